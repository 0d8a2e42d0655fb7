/** Many jobs that ended long ago, put into a data folder before a service opens it: by the door of a move, in a second or so. */
import { createHash } from 'node:crypto'
import { readGraph } from '../../../engine/graph/graph-json.ts'
import { openSqliteRecords } from '../../../src/adapters/store/sqlite/transfer/sqlite-records.ts'
import { RECORD_KINDS, type RecordName } from '../../../src/adapters/store/transfer/record-kinds.ts'
import { toRecipe } from '../../../src/domain/jobs/submit/job-origin.ts'
import type { RecordTarget } from '../../../src/domain/transfer/move-records.ts'
import type { RecordValue } from '../../../src/domain/transfer/record-kinds.ts'

interface StoredJobsOptions {
  readonly accountId?: string
  readonly count: number
  readonly now?: Date
}

type Sample = Readonly<Record<string, RecordValue>>

const DAY_MS = 86_400_000
const SPAN_MS = 5 * DAY_MS
const WRITE_ROWS = 5000
const FAILS_EVERY = 20
const USERS = 50

const GRAPH = {
  '1': { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'flux1-dev.safetensors' } },
  '2': { class_type: 'UltimateSDUpscale', inputs: { model: ['1', 0], seed: 42 } },
  '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'stored' } },
}
const { key: RECIPE, title, terms } = toRecipe(readGraph(GRAPH), null)
const WORKFLOW = JSON.stringify(GRAPH)
const ERROR = JSON.stringify({
  ...{ code: 'out_of_memory', message: 'Allocation on device 0 would exceed allowed memory.' },
  ...{ nodeId: '2', classType: 'UltimateSDUpscale', traceback: null },
})

/** One in twenty failed with `out_of_memory`; each has a `name` and a `user`. Ids begin like {@link storedJobId}. */
export async function storeJobs(
  directory: string,
  { accountId = 'local', count, now = new Date() }: StoredJobsOptions,
): Promise<void> {
  using records = openSqliteRecords(directory, now)
  const expiresAt = now.getTime() + DAY_MS
  await write(records, 'account', [
    { id: accountId, max_running: 100, max_queued: 1_000_000, served: 0, share_percent: 100 },
  ])
  if (accountId !== 'local') await write(records, 'account_profile', [toProfile(accountId, now)])
  await write(records, 'job_recipe', [
    { account_id: accountId, recipe: RECIPE, title, terms, expires_at: expiresAt + DAY_MS },
  ])
  for (let from = 1; from <= count; from += WRITE_ROWS) {
    const numbers = Array.from({ length: Math.min(WRITE_ROWS, count - from + 1) }, (_, index) => from + index)
    const createdAt = (number: number) => Math.round(now.getTime() - 2 * DAY_MS - ((count - number) * SPAN_MS) / count)
    await write(
      records,
      'job',
      numbers.map((number) => toJob(number, { accountId, createdAt: createdAt(number), expiresAt })),
    )
    const labels = numbers.flatMap((number) =>
      Object.entries(metadataOf(number)).map(([key, value]) => ({
        ...{ account_id: accountId, key, value, created_at: createdAt(number), job_id: storedJobId(number) },
        expires_at: expiresAt,
      })),
    )
    await write(records, 'job_label', labels)
  }
  await records.derive()
  await records.open()
}

export function storedJobId(number: number): string {
  const digest = createHash('sha256').update(`stored ${number}`).digest('hex')
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-7${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`
}

/** Without limits that a test would run into. */
function toProfile(accountId: string, now: Date): Sample {
  return {
    ...{ account_id: accountId, name: accountId, tier: 'pro', status: 'active', created_at: now.getTime(), version: 1 },
    overrides: JSON.stringify({ requestsPerMinute: null, concurrentJobs: 100, streams: 100, creditFloorMicros: 0 }),
  }
}

function metadataOf(number: number): Readonly<Record<string, string>> {
  return { name: `stored ${number}`, user: `user-${number % USERS}` }
}

function toJob(
  number: number,
  { accountId, createdAt, expiresAt }: { accountId: string; createdAt: number; expiresAt: number },
): Sample {
  const hasFailed = number % FAILS_EVERY === 0
  return {
    ...{ id: storedJobId(number), seq: number, account_id: accountId, pool: 'default', priority: 0, attempt: 1 },
    ...{ status: hasFailed ? 'failed' : 'succeeded', version: 5, created_at: createdAt, started_at: createdAt + 1000 },
    ...{
      completed_at: createdAt + 9000,
      expires_at: expiresAt,
      needs_extra_data: 0,
      input_count: 0,
      output_count: 0,
      output_types: 0,
    },
    ...{ outputs_reused: 0, outputs_replaced: 0, needs: '', engine_id: 'gpu1', engine_losses: 0, is_hidden: 0 },
    ...{ metadata: JSON.stringify(metadataOf(number)), progress: null, error: hasFailed ? ERROR : null },
    ...{ recipe: RECIPE, title, code: hasFailed ? 'out_of_memory' : null, workflow: WORKFLOW },
  }
}

async function write(records: RecordTarget, name: RecordName, samples: readonly Sample[]): Promise<void> {
  const kind = RECORD_KINDS.find((each) => each.name === name)
  if (kind === undefined) throw new Error(`no records called ${name}`)
  const rows = samples.map((sample) => kind.columns.map((column) => sample[column] ?? null))
  await records.write(kind, rows, { moveId: 'stored jobs', kind: null, key: null })
}
