/**
 * The credential that a run of a job gives to the partner nodes of its engine: it runs models on the job's account while the job
 * runs, and nothing else. It takes the place of the key in the job's `extra_data`, so that no key of an account reaches an engine,
 * and so that every call is known to be the job's.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../../lib/clock.ts'
import type { Authenticate } from '../../accounts/caller.ts'
import type { SigningKey } from '../../assets/signed-url.ts'
import { ServiceError } from '../../errors.ts'
import { isRecord, type JsonRecord } from '../catalog/model.ts'
import type { PartnerCaller } from './partner-nodes.ts'

interface RunOfJob {
  readonly jobId: string
  readonly accountId: string
  readonly attempt: number
  readonly extraData: Readonly<Record<string, unknown>> | null
}

export interface RunTokens {
  /** `extra_data` with the token instead of the key; as it is where it has no key that may run models. */
  equip(run: RunOfJob): Promise<RunOfJob['extraData']>
  /** Whether a credential is meant to be such a token. */
  isToken(credential: string): boolean
  /** Throws unauthorized. */
  open(credential: string): Promise<PartnerCaller>
}

interface RunTokenDeps {
  readonly claims: SignedClaims
  /** Authenticates without counting a request. */
  readonly identify: Authenticate
  /** Whether callers must show a credential at all. */
  readonly hasCredentials: boolean
  /** Names of the member of `extra_data` that holds the key, one per brand. */
  readonly keyNames: readonly string[]
  readonly isRunning: (accountId: string, jobId: string) => Promise<boolean>
  readonly now: () => Date
}

const PREFIX = 'atelier-run-'
// Longer than any job runs. The end of the job ends the token before.
const LIFE_MS = 7 * 24 * 60 * 60 * 1000
/** The name that ComfyUI gives the key of its nodes. */
const SERVER_KEY = 'api_key_comfy_org'
const CREDENTIAL = /^(api_key|auth_token)_\w+_org$/

export function createRunTokens(deps: RunTokenDeps): RunTokens {
  const { claims, identify, hasCredentials, keyNames } = deps

  /** null: nothing in the job says that its account pays for models. */
  async function findPayer({ accountId, extraData }: RunOfJob): Promise<{ readonly keyId: string | null } | null> {
    const key = keyNames.map((name) => extraData?.[name]).find((value) => typeof value === 'string' && value !== '')
    if (!hasCredentials) return { keyId: null }
    if (key === undefined) return null
    try {
      const caller = await identify(key as string)
      const mayRun = caller.scopes === null || caller.scopes.has('models:run')
      return caller.accountId === accountId && mayRun ? { keyId: caller.keyId } : null
    } catch (error) {
      // A key of somebody else: it is left where it is, and refused when a node shows it.
      if (error instanceof ServiceError && ['unauthorized', 'forbidden'].includes(error.refusal)) return null
      throw error
    }
  }

  return {
    async equip(run) {
      const payer = await findPayer(run)
      if (payer === null) return run.extraData
      const { accountId, jobId, attempt } = run
      const expiresAt = new Date(deps.now().getTime() + LIFE_MS)
      const token = `${PREFIX}${claims.sign({ account: accountId, job: jobId, attempt, key: payer.keyId }, expiresAt)}`
      // ComfyUI prefers a token of its own service to a key, so neither may stand beside ours.
      const rest = Object.entries(run.extraData ?? {}).filter(([name]) => !CREDENTIAL.test(name))
      return { ...Object.fromEntries(rest), [SERVER_KEY]: token }
    },
    isToken: (credential) => credential.startsWith(PREFIX),
    async open(credential) {
      const said = claims.verify(credential.slice(PREFIX.length))
      const { account, job, attempt, key = null } = said ?? {}
      const isWhole = typeof account === 'string' && typeof job === 'string' && typeof attempt === 'number'
      if (!isWhole || !(await deps.isRunning(account, job))) throw ended()
      const run = { jobId: job, attempt: String(attempt) }
      return { accountId: account, keyId: typeof key === 'string' ? key : null, scopes: RIGHTS, endpoints: null, run }
    },
  }
}

const RIGHTS: ReadonlySet<string> = new Set(['models:run', 'assets:write'])

function ended(): ServiceError {
  return new ServiceError('unauthorized', 'this credential was for one run of one job, and that run is not going on')
}

/**
 * Short texts that carry what they allow, signed for one purpose and a limited time. Nothing is remembered: any process of the
 * service verifies them. The newest key signs and every known key verifies. All refusals read the same.
 */
export interface SignedClaims {
  sign(claims: JsonRecord, expiresAt: Date): string
  /** null: it was not signed here for this purpose, or its time is over. */
  verify(text: string): JsonRecord | null
}

const TEXT = /^([A-Za-z0-9_-]{1,4096})\.([A-Za-z0-9_-]{1,32})\.([A-Za-z0-9_-]{43})$/

/** `purpose` keeps a text from being used for anything else that the same keys sign. */
export function createSignedClaims(purpose: string, keys: readonly SigningKey[], clock: Clock): SignedClaims {
  const [newest] = keys
  if (newest === undefined) throw new RangeError('signing needs at least one key')
  const signatureOf = ({ id, secret }: SigningKey, body: string) =>
    createHmac('sha256', secret).update(`atelier ${purpose}\n${id}\n${body}`).digest('base64url')
  return {
    sign(claims, expiresAt) {
      const body = Buffer.from(JSON.stringify({ ...claims, exp: expiresAt.getTime() })).toString('base64url')
      return `${body}.${newest.id}.${signatureOf(newest, body)}`
    },
    verify(text) {
      const [, body = '', keyId, signature = ''] = TEXT.exec(text) ?? []
      const key = keys.find(({ id }) => id === keyId)
      // An unknown key costs as much as a known one.
      const expected = signatureOf(key ?? newest, body)
      const isSigned =
        signature.length === expected.length && timingSafeEqual(Buffer.from(signature), Buffer.from(expected))
      if (!isSigned || key === undefined) return null
      const claims: unknown = JSON.parse(Buffer.from(body, 'base64url').toString())
      if (!isRecord(claims) || typeof claims['exp'] !== 'number') return null
      return clock.now().getTime() < claims['exp'] ? claims : null
    },
  }
}
