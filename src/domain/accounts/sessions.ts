/**
 * Sessions of people who signed in with a credential in a browser. A session is a sealed text that the browser keeps; it holds a proof
 * of the credential and no secret, and outlives a restart. It is good for as long as the credential itself, at most for seven days,
 * and for twelve hours (an operator's: half an hour) without a request. The store keeps two things for each account: its epoch,
 * which signing out everywhere raises, so that sessions of an earlier epoch do not open; and the ids of up to 200 sessions that were
 * signed out singly, until they would have expired. One more than that ends all sessions of the account. Another process may accept
 * an ended session for a second longer.
 */
import { hkdfSync, randomBytes } from 'node:crypto'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Clock } from '../../../lib/clock.ts'
import { createSealer, type Sealer } from '../../../lib/sealer.ts'
import type { CredentialProof } from './caller.ts'

/** Whose session it is: an account's, or the operator's, which opens the administration and nothing else. */
export type SessionRole = 'account' | 'operator'

export interface BegunSession {
  /** For the browser to keep. */
  readonly text: string
  readonly expiresAt: Date
}

export interface Sessions {
  begin(role: SessionRole, proof: CredentialProof): Promise<BegunSession>
  /** The proof that a session holds, while it is good. */
  open(role: SessionRole, text: string): Promise<OpenedSession | null>
  /** Ends this session in every tab, and for every copy of its text. */
  end(role: SessionRole, text: string): Promise<void>
  /** Ends all sessions that began with the same credential, in every browser. */
  endAll(role: SessionRole, proof: CredentialProof): Promise<void>
}

export interface OpenedSession {
  readonly proof: CredentialProof
  /** The same session with a fresh sign of life; null: the last one is recent enough. */
  renew(): BegunSession | null
}

/** Where epochs are kept, so that every process of the service knows them. */
interface EpochStore {
  readMeta(key: string): Promise<string | null>
  changeMeta(key: string, change: (value: string | null) => string): Promise<string>
}

interface SessionsOptions {
  /** The service's own, the newest first. Sessions that were sealed under an older one stay good. */
  readonly secrets: readonly Uint8Array[]
  readonly epochs: EpochStore
  readonly clock: Clock
}

interface SealedSession {
  /** The same through all renewals. */
  readonly id: string
  readonly proof: CredentialProof
  readonly startedAt: number
  readonly seenAt: number
  readonly epoch: number
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const MAX_AGE_MS = 7 * 24 * HOUR_MS
const IDLE_MS: Readonly<Record<SessionRole, number>> = { account: 12 * HOUR_MS, operator: 30 * MINUTE_MS }
const RENEW_AFTER_MS = 5 * MINUTE_MS
// How long an epoch that was read counts: a session that was ended elsewhere is at most this much longer good.
const EPOCH_MS = 1000
const EPOCHS_MAX = 10_000
const KEY_BYTES = 32
const ID_BYTES = 12
// Of one credential. More than these in seven days end all of its sessions: none that was ended may open again.
const ENDED_MAX = 200

export function createSessions({ secrets, epochs, clock }: SessionsOptions): Sessions {
  const sealer = toSealer(secrets)
  const epochOf = createEpochs(epochs, clock)

  function seal(role: SessionRole, session: SealedSession): BegunSession {
    const text = Buffer.from(sealer.seal(Buffer.from(JSON.stringify(session)), role)).toString('base64url')
    return { text, expiresAt: new Date(endOf(role, session)) }
  }

  return {
    async begin(role, proof) {
      const now = clock.now().getTime()
      const { epoch } = await epochOf.read(subjectOf(role, proof))
      return seal(role, { id: randomBytes(ID_BYTES).toString('base64url'), proof, startedAt: now, seenAt: now, epoch })
    },
    async open(role, text) {
      const session = unseal(sealer, role, text)
      const now = clock.now().getTime()
      if (session === null || now >= endOf(role, session)) return null
      const { epoch, ended } = await epochOf.read(subjectOf(role, session.proof))
      if (session.epoch < epoch || ended.some(([id]) => id === session.id)) return null
      return {
        proof: session.proof,
        renew: () => (now - session.seenAt < RENEW_AFTER_MS ? null : seal(role, { ...session, seenAt: now })),
      }
    },
    async end(role, text) {
      const session = unseal(sealer, role, text)
      if (session === null) return
      await epochOf.end(subjectOf(role, session.proof), [session.id, session.startedAt + MAX_AGE_MS])
    },
    endAll: (role, proof) => epochOf.raise(subjectOf(role, proof)),
  }
}

function endOf(role: SessionRole, { proof, startedAt, seenAt }: SealedSession): number {
  return Math.min(startedAt + MAX_AGE_MS, seenAt + IDLE_MS[role], proof.token?.expiresAt ?? Number.POSITIVE_INFINITY)
}

/** Sessions that end together: those of one key, of one token's account, or of the service's only credential. */
function subjectOf(role: SessionRole, { keyId, token }: CredentialProof): string {
  return `${role}:${keyId ?? token?.accountId ?? ''}`
}

/** Everything in it was written by us; what does not open was not. */
function unseal(sealer: Sealer, role: SessionRole, text: string): SealedSession | null {
  const opened = sealer.open(Buffer.from(text, 'base64url'), role)
  return opened === null ? null : (JSON.parse(Buffer.from(opened).toString('utf8')) as SealedSession)
}

/** Derived, so that no other use of the secrets can tell anything about this one. */
function toSealer(secrets: readonly Uint8Array[]): Sealer {
  const [newest, ...former] = secrets.map((secret) =>
    Buffer.from(hkdfSync('sha256', secret, '', 'atelier session v1', KEY_BYTES)),
  )
  if (newest === undefined) throw new RangeError('sessions need at least one secret')
  return createSealer(newest, former)
}

/** A session that was signed out, and when it could not open any more anyhow. */
type EndedSession = readonly [id: string, untilMs: number]

interface Epoch {
  readonly epoch: number
  readonly ended: readonly EndedSession[]
}

interface KnownEpoch extends Epoch {
  readonly readAt: number
}

function toEpoch(text: string | null): Epoch {
  return text === null ? { epoch: 0, ended: [] } : JSON.parse(text)
}

function createEpochs(store: EpochStore, clock: Clock) {
  const known = new BoundedMap<string, KnownEpoch>(EPOCHS_MAX)
  const keyOf = (subject: string) => `session_ends:${subject}`

  function note(subject: string, text: string | null): Epoch {
    const found = toEpoch(text)
    known.set(subject, { ...found, readAt: clock.now().getTime() })
    return found
  }

  /** What other processes, or other requests here, write meanwhile stays: see `changeMeta`. */
  async function change(subject: string, toNext: (epoch: Epoch) => Epoch): Promise<void> {
    note(subject, await store.changeMeta(keyOf(subject), (text) => JSON.stringify(toNext(toEpoch(text)))))
  }

  return {
    async read(subject: string): Promise<Epoch> {
      const last = known.get(subject)
      const isFresh = last !== undefined && clock.now().getTime() - last.readAt < EPOCH_MS
      if (isFresh) return last
      const text = await store.readMeta(keyOf(subject))
      // Whatever was noted meanwhile may be a change that this read came before.
      const noted = known.get(subject)
      return noted === undefined || noted === last ? note(subject, text) : noted
    },
    raise: (subject: string) => change(subject, ({ epoch }) => ({ epoch: epoch + 1, ended: [] })),
    end: (subject: string, session: EndedSession) =>
      change(subject, ({ epoch, ended }) => {
        const now = clock.now().getTime()
        const kept = [...ended.filter(([id, untilMs]) => untilMs > now && id !== session[0]), session]
        return kept.length > ENDED_MAX ? { epoch: epoch + 1, ended: [] } : { epoch, ended: kept }
      }),
  }
}
