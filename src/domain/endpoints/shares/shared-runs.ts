/**
 * Runs that come through a link: jobs of the account that made it, within the bounds of the link. A visitor brings his files along: what the
 * account keeps under a name, an id or a hash is not his to name. He finds his own runs by their tokens, and no others.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../../../../lib/clock.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import { isDataUrl } from '../../assets/given-files.ts'
import { ServiceError } from '../../errors.ts'
import { type KeyHolder, keyReuse } from '../../idempotency/idempotency-key.ts'
import type { Job } from '../../jobs/job.ts'
import { findExcess, NO_TALLIES, type RunBound, type RunLimitStore } from '../../jobs/limits/run-limits.ts'
import { readAsked, readRunLabels } from '../../jobs/submit/job-labels.ts'
import type { JobOrigin } from '../../jobs/submit/job-origin.ts'
import { outOfBounds } from '../../jobs/submit/submit-refusals.ts'
import type { EndpointVersion } from '../endpoint.ts'
import type { Reach, Resolved } from '../reach.ts'
import type { RunEndpoint } from '../run-endpoint.ts'
import { invalidInput } from '../told-refusals.ts'
import type { SharedRunTokens } from './run-tokens.ts'
import { type Share, scopeOf, toRunLimits } from './share.ts'
import type { Visitors } from './visitors.ts'

interface SharedCall {
  readonly inputs: JsonObject
  /** Where the visitor is. */
  readonly address: string
  /** Of the deployment that the address names. */
  readonly pool: string | null
  readonly idempotencyKey: string | null
  readonly signal: AbortSignal
}

export interface SharedRun {
  readonly token: string
  readonly job: Job
  /** null: its version was removed, or the inputs were too long to be kept. */
  readonly version: EndpointVersion | null
  readonly inputs: JsonObject | null
}

export interface SharedRuns {
  /** What visitors run now. */
  resolve(share: Share): Promise<Resolved>
  /** Throws invalid_input, rate_limited, run_limit, spend_limit, and whatever a submit throws. */
  start(share: Share, call: SharedCall): Promise<SharedRun>
  /** Throws not_found, also for a run of another link. */
  find(share: Share, token: string): Promise<SharedRun>
}

interface SharedRunsDeps {
  readonly endpoints: Pick<Reach, 'resolve'>
  readonly runs: Pick<RunEndpoint, 'run' | 'tryRun'>
  readonly limits: Pick<RunLimitStore, 'findUse'>
  readonly visitors: Visitors
  readonly tokens: SharedRunTokens
  readonly findJob: (accountId: string, jobId: string) => Promise<Job>
  readonly originOf: (accountId: string, jobId: string) => Promise<JobOrigin | null>
  readonly findKey: (accountId: string, key: string) => Promise<KeyHolder | null>
  readonly clock: Clock
}

// Only whoever drew it can send it again.
const MIN_KEY_LENGTH = 16
const MAX_KEY_LENGTH = 128
const SOON_SECONDS = 5

export function createSharedRuns(deps: SharedRunsDeps): SharedRuns {
  const { endpoints, runs, tokens, findJob } = deps
  const boundOf = (share: Share): RunBound => ({
    scope: scopeOf(share),
    name: 'this link',
    limits: toRunLimits(share.limits),
  })

  async function resolve({ accountId, name, version }: Share): Promise<Resolved> {
    const resolved = await endpoints.resolve(toOwner(accountId), version === null ? name : `${name}@${version}`)
    if (resolved.endpoint.state === 'ready') return resolved
    throw new ServiceError('endpoint_stopped', 'this page was stopped by its owner; try again later')
  }

  /** Before anything is looked at. What counts is counted with the job. */
  async function refuseEarly(share: Share): Promise<void> {
    const bound = boundOf(share)
    const at = deps.clock.now()
    const use = (await deps.limits.findUse(share.accountId, [bound.scope])).get(bound.scope)
    const excess = findExcess(bound, use ?? { inFlight: 0, tallies: NO_TALLIES }, { at, micros: 0 })
    if (excess !== null) throw outOfBounds(excess, at, SOON_SECONDS)
  }

  async function find(share: Share, token: string): Promise<SharedRun> {
    const jobId = tokens.read(share.id, token)
    if (jobId === null) throw noRun()
    const job = await findJob(share.accountId, jobId)
    const called = readRunLabels(job.metadata)
    if (called?.share !== share.id) throw noRun()
    const [origin, version] = await Promise.all([
      deps.originOf(share.accountId, jobId),
      endpoints.resolve(toOwner(share.accountId), `${called.name}@${called.version}`).then(
        (resolved) => resolved.version,
        (error: unknown) => {
          if (error instanceof ServiceError && error.refusal === 'not_found') return null
          throw error
        },
      ),
    ])
    const inputs = origin?.endpointInputs == null ? null : (parseLosslessJson(origin.endpointInputs) as JsonObject)
    return { token, job, version, inputs }
  }

  return {
    resolve,
    find,
    async start(share, { inputs, address, pool, idempotencyKey, signal }) {
      const { version } = await resolve(share)
      mustBeOwnFiles(version, inputs)
      const { accountId, id: shareId, name } = share
      const key = idempotencyKey === null ? null : toOwnKey(shareId, idempotencyKey)
      // The same call again, because its answer was lost.
      const before = key === null ? null : await deps.findKey(accountId, key)
      const asked = key === null ? undefined : toDigest(inputs)
      if (before !== null && before.jobId !== null) {
        const run = await find(share, tokens.tokenOf(shareId, before.jobId))
        if (readAsked(run.job.metadata) !== asked) throw keyReuse(before)
        return run
      }
      const start = async () => {
        await refuseEarly(share)
        const request = {
          ...toOwner(accountId),
          ...{ pool, reference: `${name}@${version.number}`, inputs, share: shareId, signal },
          ...(asked !== undefined && { asked }),
          ...{ within: [boundOf(share)], extraData: null, metadata: {}, priority: 0, webhook: null, reuse: null },
          idempotencyKey: key,
        }
        const [complaint] = (await runs.tryRun(request)).complaints
        if (complaint !== undefined) throw complaint
        return runs.run(request)
      }
      const made = await deps.visitors.run({ accountId, shareId, address }, start)
      return { token: tokens.tokenOf(shareId, made.job.id), ...made }
    },
  }
}

/** A link was made by whoever may publish, and so reaches every endpoint: which one, it says itself. */
const toOwner = (accountId: string) => ({ accountId, endpoints: null })

function noRun(): ServiceError {
  return new ServiceError('not_found', 'there is no such run, or no longer')
}

function toDigest(inputs: JsonObject): string {
  return hash('sha256', stringifyLosslessJson(inputs), 'base64url')
}

/** Beside those of the account and of other links. */
function toOwnKey(shareId: string, key: string): string {
  if (key.length >= MIN_KEY_LENGTH && key.length <= MAX_KEY_LENGTH) return `@share ${shareId} ${key}`
  throw new ServiceError(
    'invalid_request',
    `Idempotency-Key must have ${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} characters here`,
  )
}

const ADDRESS = /^https?:\/\//i

/** Throws invalid_input. */
function mustBeOwnFiles({ inputs }: EndpointVersion, given: JsonObject): void {
  const problems = inputs.flatMap(({ name, type }) => {
    const value = Object.hasOwn(given, name) ? given[name] : null
    if (type !== 'file' || value === null || isOwnFile(value)) return []
    return [{ name, reason: 'not_a_file' as const, message: `${name}: give a file, as a data URL or an https address` }]
  })
  if (problems.length > 0) throw invalidInput(problems)
}

function isOwnFile(value: JsonValue): boolean {
  const url = isJsonObject(value) && Object.keys(value).length === 1 ? value['url'] : value
  return typeof url === 'string' && (isDataUrl(url) || ADDRESS.test(url))
}
