/** What attempts at jobs took of servers: written with their ends, summed up for reports, and forgotten when no report asks any more. */
import type { GpuGroup, GpuSums, GpuUseStore } from '../../../../domain/jobs/read/gpu-report.ts'
import { type GpuUse, toKeptUse } from '../../../../domain/jobs/run/gpu-use.ts'
import { all, chore, defineStore, get, read, run, type Steps } from '../../statements/operation.ts'
import { both, command, query, toRows, type Words } from '../../statements/statement.ts'
import { integer, nullable, shape, text } from '../../tables/table.ts'
import { dayEdges } from '../ledger/charges.ts'

/** An attempt that is over. */
interface EndedAttempt {
  readonly id: string
  readonly accountId: string
  readonly pool: string
  readonly engineId: string | null
  readonly attempt: number
  readonly startedAt: Date | null
  readonly endedAt: Date
  /** null: no server computed anything of it. */
  readonly gpu: GpuUse | null
}

const USED = {
  ...({ job_id: 'uuid', account_id: 'text', pool: 'text', engine_id: 'text', attempt: 'integer' } as const),
  ...({ ended_at: 'bigint', ms: 'bigint', classes: 'text', weights: 'text' } as const),
}
const COLUMNS = Object.keys(USED).join(', ')
const NOTE = command(
  'gpu.note',
  (words) => `INSERT INTO gpu_use (${COLUMNS}) SELECT ${COLUMNS} FROM ${words.rows(':used', USED)} AS used`,
)

export function* noteGpuUse(attempts: readonly EndedAttempt[]): Steps<void> {
  const used = attempts.flatMap(({ id, accountId, pool, engineId, attempt, startedAt, endedAt, gpu }) => {
    if (gpu === null || engineId === null || startedAt === null) return []
    const { ms, classes, weights } = toKeptUse(gpu, endedAt.getTime() - startedAt.getTime())
    const what = { job_id: id, account_id: accountId, pool, engine_id: engineId, attempt, ended_at: endedAt, ms }
    return ms === 0 ? [] : [{ ...what, classes: JSON.stringify(classes), weights: JSON.stringify(weights) }]
  })
  if (used.length > 0) yield* run(NOTE, toRows('used', used))
}

/** `place` of a day, or the name of a group. */
const row = shape({
  what: text<'day' | 'group'>(),
  place: nullable(integer()),
  name: nullable(text()),
  ms: integer(),
  runs: integer(),
})

/** What a row of the facts counts for, and how much of it. */
function partsOf({ either }: Words, by: GpuGroup): { readonly name: string; readonly ms: string; readonly of: string } {
  switch (by) {
    case 'class': {
      const of = either(', json_each(gpu_use.classes) AS part', ', json_each_text(gpu_use.classes::json) AS part')
      return { name: 'part.key', ms: either('part.value', 'part.value::bigint'), of }
    }
    case 'weights': {
      const of = either(
        ', json_each(gpu_use.weights) AS part',
        ', json_array_elements_text(gpu_use.weights::json) AS part (value)',
      )
      return { name: 'part.value', ms: 'ms', of }
    }
    case 'server':
      return { name: 'engine_id', ms: 'ms', of: '' }
    case 'job':
      return { name: 'CAST(job_id AS text)', ms: 'ms', of: '' }
    case 'account':
      return { name: 'account_id', ms: 'ms', of: '' }
    default:
      return { name: 'pool', ms: 'ms', of: '' }
  }
}

/** One statement, so that days and groups are of the same moment. */
function sumsBy(by: GpuGroup, isOfOne: boolean) {
  return query(`gpu.sums.${by}.${isOfOne ? 'one' : 'all'}`, row, (words) => {
    const { either } = words
    const index = either(`INDEXED BY gpu_use_${isOfOne ? 'account' : 'time'}`, '')
    const isWhose = isOfOne ? 'AND account_id = :accountId' : ''
    const { name, ms, of } = partsOf(words, by)
    const days = `
      SELECT 'day' AS what, CAST(place AS bigint) AS place, CAST(NULL AS text) AS name, sum(ms) AS ms, count(*) AS runs
      FROM edge ${either('CROSS JOIN', 'JOIN')} gpu_use ${index} ON ended_at >= begins AND ended_at < ends ${isWhose} GROUP BY place`
    const groups = `
      UNION ALL SELECT * FROM (
        SELECT 'group', CAST(NULL AS bigint), CAST(${name} AS text), sum(${ms}), count(*)
        FROM gpu_use ${index}${of} WHERE ended_at >= :from AND ended_at < :to ${isWhose}
        GROUP BY 3 ORDER BY 4 DESC, 3 LIMIT CAST(:limit AS bigint)) AS most`
    return `WITH edge AS (${dayEdges(words)}) ${days} ${by === 'day' ? '' : groups}`
  })
}

function ofEach(isOfOne: boolean) {
  const of = (by: GpuGroup) => sumsBy(by, isOfOne)
  return {
    ...{ day: of('day'), pool: of('pool'), server: of('server'), class: of('class'), weights: of('weights') },
    ...{ job: of('job'), account: of('account') },
  }
}

const OF_ONE = ofEach(true)
const OF_ALL = ofEach(false)

const OF_JOB = query(
  'gpu.ofJob',
  shape({ ms: integer(), runs: integer() }),
  ({
    either,
  }) => `SELECT coalesce(sum(ms), 0) AS ms, count(*) AS runs FROM gpu_use ${either('INDEXED BY gpu_use_job', '')}
    WHERE job_id = :jobId AND account_id = :accountId`,
)
const SWEEP = command(
  'gpu.sweep',
  both({
    sqlite:
      'DELETE FROM gpu_use WHERE seq IN (SELECT seq FROM gpu_use WHERE ended_at < :before ORDER BY ended_at LIMIT :limit)',
    postgres: `DELETE FROM gpu_use WHERE seq = ANY (ARRAY(
      SELECT seq FROM gpu_use WHERE ended_at < :before ORDER BY ended_at LIMIT :limit FOR UPDATE SKIP LOCKED))`,
  }),
)

export const gpuUseStore = defineStore<GpuUseStore>('gpuUse', {
  read: read(function* ({ accountId, edges, by, limit }): Steps<GpuSums> {
    const [from, to] = [edges[0], edges.at(-1)]
    if (from === undefined || to === undefined) return { days: [], groups: [] }
    const period = { edges: edges.map((edge) => edge.getTime()), from, to, limit }
    const rows = yield* accountId === null ? all(OF_ALL[by], period) : all(OF_ONE[by], { ...period, accountId })
    const days = rows.flatMap(({ what, place, ms, runs }) => (what === 'day' ? [{ place: place ?? 0, ms, runs }] : []))
    const groups = rows.flatMap(({ what, name, ms, runs }) =>
      what === 'group' ? [{ name: name ?? '', ms, runs }] : [],
    )
    return { days: days.sort((one, other) => one.place - other.place), groups }
  }),
  ofJob: read(function* (accountId, jobId) {
    return (yield* get(OF_JOB, { accountId, jobId })) ?? { ms: 0, runs: 0 }
  }),
  sweep: chore(
    function* (before, limit) {
      return yield* run(SWEEP, { before, limit })
    },
    { isEssential: true, isTransaction: false },
  ),
})
