/** Holds the service to everything in the journal, once the clients are done: each promise is looked up again, over HTTP. */
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { Client, NeverAnswered, TERMINAL } from '../load/client.ts'
import { toEnd } from '../load/job-session.ts'
import type { FlawKind, Told, ToldAt } from '../load/told.ts'
import { sha256 } from '../load/upload-session.ts'
import type { World } from '../world/world.ts'

export interface Flaw {
  readonly kind: FlawKind
  readonly text: string
  /** Of the job, asset or call. */
  readonly id: string | null
  /** When a client met it; null: found at the end. */
  readonly at: number | null
}

type OfKind<What extends Told['what']> = Extract<ToldAt, { what: What }>

const AT_ONCE = 8
/** The only way in which one of these jobs may fail: too many of its workers died. */
const EXCUSED = 'worker_lost'

export interface CheckedTold {
  readonly flaws: readonly Flaw[]
  /** How each job ended, by its id. */
  readonly ends: ReadonlyMap<string, string>
  /** Jobs that failed as they may. */
  readonly excused: readonly string[]
}

export async function checkTold(world: World, told: readonly ToldAt[]): Promise<CheckedTold> {
  const blake3 = await openBlake3()
  const flaws: Flaw[] = []
  const ends = new Map<string, string>()
  const excused: string[] = []
  const fronts = world.apis.map(({ front }) => `http://127.0.0.1:${front.port}`)
  const journal = { tell: (line: Told) => line.what === 'flaw' && add(line.kind, line.text, line.id) }
  const clients = new Map(
    world.accounts.map((account) => [account.id, new Client(account, { fronts, journal, random: seededRandom(1) })]),
  )
  const clientOf = (account: string) => clients.get(account) as Client
  const ended = new Map(of(told, 'ended').map((line) => [line.id, line]))
  const removed = new Set(of(told, 'removed').map(({ id }) => id))

  function add(kind: FlawKind, text: string, id: string | null): void {
    flaws.push({ kind, text, id, at: null })
  }

  async function checkJob({ id, account, label, color }: OfKind<'job'>): Promise<void> {
    const client = clientOf(account)
    const { status, json: job } = await client.ask(`/api/v2/jobs/${id}`)
    if (status !== 200) return add('lost', `job ${id} answers ${status} ${JSON.stringify(job)}`, id)
    if (!TERMINAL.has(job.status)) return add('lost', `job ${id} is ${job.status} when everything is over`, id)
    ends.set(id, job.status)
    const before = ended.get(id)
    if (before !== undefined && before.end !== toEnd(job))
      add('doubled', `job ${id} was ${before.end}, and is ${toEnd(job)}`, id)
    if (label !== null && job.metadata?.label !== label) add('lost', `job ${id} has other metadata than its own`, id)
    if (job.status === 'failed' && job.error.code === EXCUSED) excused.push(id)
    else if (job.status === 'failed') add('lost', `job ${id} failed: ${JSON.stringify(job.error)}`, id)
    if (job.status === 'succeeded' && job.outputs.length !== 1)
      add('doubled', `job ${id} has ${job.outputs.length} outputs`, id)
    for (const output of job.outputs) {
      const answer = await client.ask(`/api/v2/assets/${output.id}/content`)
      if (answer.status !== 200) return add('lost', `output ${output.id} of job ${id} answers ${answer.status}`, id)
      const isWhole = answer.bytes.length === output.size_bytes && `blake3:${blake3.hash(answer.bytes)}` === output.hash
      const isOwn = color === null || Buffer.from(answer.bytes).equals(toPng({ width: 8, height: 8, color }))
      if (!isWhole || !isOwn) add('wrong bytes', `output ${output.id} of job ${id} has other bytes than its own`, id)
    }
  }

  async function checkAsset({ id, account, sha256: sum }: OfKind<'asset'>): Promise<void> {
    if (removed.has(id)) return
    const answer = await clientOf(account).ask(`/api/v2/assets/${id}/content`)
    if (answer.status !== 200) add('lost', `asset ${id} answers ${answer.status}`, id)
    else if (sha256(answer.bytes) !== sum) add('wrong bytes', `asset ${id} has other bytes than were uploaded`, id)
  }

  async function guarded(id: string, check: () => Promise<void>): Promise<void> {
    try {
      await check()
    } catch (error) {
      if (!(error instanceof NeverAnswered)) throw error
      add('lost', error.message, id)
    }
  }

  const checks = [
    ...of(told, 'job').map((job) => () => guarded(job.id, () => checkJob(job))),
    ...of(told, 'asset').map((asset) => () => guarded(asset.id, () => checkAsset(asset))),
  ]
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let check = checks.pop(); check !== undefined; check = checks.pop()) await check()
    }),
  )
  return { flaws, ends, excused }
}

export function of<What extends Told['what']>(told: readonly ToldAt[], what: What): OfKind<What>[] {
  return told.filter((line): line is OfKind<What> => line.what === what)
}
