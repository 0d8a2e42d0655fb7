/** What a request for many jobs says: jobs one by one, or one graph with a table or a product of changes. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { invalidField } from '../../../domain/errors.ts'
import { MAX_BATCH } from '../../../domain/jobs/batches/batch.ts'
import { applyChange, type Change, multiply, type ReadItem } from '../../../domain/jobs/batches/submit-batch.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { readSubmitBody } from './submit-body.ts'

interface BatchBody {
  readonly isWhole: boolean
  readonly items: readonly ReadItem[]
  /** null: jobs one by one. */
  readonly changes: readonly Change[] | null
}

const COMMON = ['extra_data', 'metadata', 'priority', 'webhook', 'reuse']

export function readBatchBody(body: JsonObject, check: ContractCheck): BatchBody {
  const isWhole = readMode(body['mode'], check) === 'all_or_nothing'
  const given = ['jobs', 'rows', 'product'].filter((name) => body[name] !== undefined)
  if (given.length !== 1) throw invalidField('jobs', 'or rows or product must be there, and only one of them')
  if (body['jobs'] !== undefined) return { isWhole, items: readJobs(body, check), changes: null }
  // Read once: what is wrong with them is wrong with the request, and all jobs share them.
  const common = readSubmitBody(body, check)
  const changes = body['rows'] === undefined ? readProduct(body['product'], check) : readRows(body['rows'], check)
  const items = changes.map((change, index): ReadItem => {
    const where = body['rows'] === undefined ? 'product' : `rows[${index}]`
    return () => ({ ...common, workflow: applyChange(common.workflow, change, where) })
  })
  return { isWhole, items, changes }
}

function readMode(value: JsonValue | undefined, check: ContractCheck): string {
  if (value === undefined) return 'all_or_nothing'
  const problem = check('BatchMode', value, 'mode')
  if (problem !== null) throw invalidField('mode', 'must be all_or_nothing or per_item')
  return value as string
}

/** What one of them leaves out is what the batch says. */
function readJobs(body: JsonObject, check: ContractCheck): ReadItem[] {
  const jobs = mustBeList(body['jobs'], 'jobs')
  const common = Object.fromEntries(COMMON.filter((name) => body[name] !== undefined).map((name) => [name, body[name]]))
  const shared = readSubmitBody(common as JsonObject, check)
  return jobs.map(
    (job, index): ReadItem =>
      () => {
        if (!isJsonObject(job)) throw invalidField(`jobs[${index}]`, 'must be an object with a workflow')
        const own = readSubmitBody(job, check)
        return {
          workflow: own.workflow,
          extraData: job['extra_data'] === undefined ? shared.extraData : own.extraData,
          metadata: job['metadata'] === undefined ? shared.metadata : own.metadata,
          priority: job['priority'] === undefined ? shared.priority : own.priority,
          webhook: job['webhook'] === undefined ? shared.webhook : own.webhook,
          reuse: job['reuse'] === undefined ? shared.reuse : own.reuse,
        }
      },
  )
}

function readRows(value: JsonValue | undefined, check: ContractCheck): Change[] {
  return mustBeList(value, 'rows').map((row, index) => {
    const problem = check('BatchChange', row, `rows[${index}]`)
    if (problem !== null || !isJsonObject(row)) throw invalidField(`rows[${index}]`, problem ?? 'must be an object')
    return row
  })
}

function readProduct(value: JsonValue | undefined, check: ContractCheck): Change[] {
  const problem = check('BatchProduct', value, 'product')
  if (problem !== null || !isJsonObject(value))
    throw invalidField('product', 'must be an object that names, by <node id>.<input>, 1 to 1000 values each')
  return multiply(value as Readonly<Record<string, readonly JsonValue[]>>)
}

function mustBeList(value: JsonValue | undefined, field: string): readonly JsonValue[] {
  if (Array.isArray(value) && value.length >= 1 && value.length <= MAX_BATCH) return value
  throw invalidField(field, `must be a list of 1 to ${MAX_BATCH}`)
}
