/**
 * The question before a run: may it begin, as these inputs will be used? It is asked before anything of the job is recorded, so a call that
 * is refused leaves nothing behind and costs nothing. The hook gets no credential, and reads files by addresses of their own.
 */
import type { NewId } from '../../../lib/ids.ts'
import { isJsonObject, type JsonObject, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { ServiceError } from '../errors.ts'
import { type AskHook, type HookAnswer, HookFault } from './ask-hook.ts'
import type { CheckedBytes, CheckLinks } from './check-links.ts'

interface RunFacts {
  readonly accountId: string
  readonly keyId: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

interface EndpointRunFacts extends RunFacts {
  readonly endpoint: { readonly name: string; readonly version: number }
  /** As they will be used. */
  readonly inputs: JsonObject
  /** Those of the inputs that are files. */
  readonly files: ReadonlyMap<string, CheckedBytes>
}

interface JobFacts extends RunFacts {
  /** The graph that would run, as JSON. */
  readonly workflow: string
  readonly files: readonly (CheckedBytes & { readonly name: string })[]
}

export interface RunCheck {
  /**
   * `prepare` makes the call ready with other inputs; it throws what a caller with such inputs would be told. Answers with what it made,
   * or null: the call stays as it is. Throws refused_by_policy, check_unavailable.
   */
  call<Prepared>(facts: EndpointRunFacts, prepare: (inputs: JsonObject) => Promise<Prepared>): Promise<Prepared | null>
  /** The same for a graph that was submitted as such, which is not changed. */
  job(facts: JobFacts): Promise<void>
}

interface RunCheckDeps {
  readonly ask: AskHook
  readonly links: Pick<CheckLinks, 'sign'>
  /** How long addresses of files are good. */
  readonly linkMs: number
  /** Where hooks reach this service, with its mount prefix. */
  readonly baseUrl: () => Promise<string>
  /** Whether graphs that are submitted as such are asked about. */
  readonly coversJobs: boolean
  readonly newId: NewId
}

const NEVER = new AbortController().signal
const RETRY_SECONDS = 5

export function createRunCheck(deps: RunCheckDeps): RunCheck {
  const { ask, newId } = deps

  function toFile(bytes: CheckedBytes, base: string): JsonObject {
    const { hash, sizeBytes, contentType } = bytes
    const url = `${base}${deps.links.sign(bytes, deps.linkMs)}`
    return { type: 'file', content_type: contentType, hash: `blake3:${hash}`, size_bytes: sizeBytes, url }
  }

  return {
    async call(facts, prepare) {
      const base = await deps.baseUrl()
      const inputs = Object.entries(facts.inputs).map(([name, value]) => {
        const bytes = facts.files.get(name)
        return [name, bytes === undefined ? value : toFile(bytes, base)] as const
      })
      const { name, version } = facts.endpoint
      const answer = await ask({
        id: `run_${newId()}`,
        data: stringifyLosslessJson({
          ...toCommon(facts),
          endpoint: { name, version },
          inputs: Object.fromEntries(inputs),
        }),
        readChange: async (given) => {
          const changed = given['inputs']
          if (!isJsonObject(changed)) throw new HookFault('its change has no object inputs')
          return prepare({ ...facts.inputs, ...changed }).catch(toFault)
        },
        signal: facts.signal ?? NEVER,
      })
      mustBeLetThrough(answer)
      return answer.answer === 'change' ? answer.change : null
    },
    async job(facts) {
      if (!deps.coversJobs) return
      const base = await deps.baseUrl()
      // What an engine alone knows the content of has no hash.
      const files = facts.files.flatMap((file) =>
        file.hash === '' ? [] : [{ name: file.name, ...toFile(file, base) }],
      )
      const common = stringifyLosslessJson({ ...toCommon(facts), endpoint: null, files })
      const answer = await ask({
        id: `run_${newId()}`,
        data: `${common.slice(0, -1)},"workflow":${facts.workflow}}`,
        readChange: async () => {
          throw new HookFault('it changes a workflow that is no call of an endpoint; such a one is allowed or refused')
        },
        signal: facts.signal ?? NEVER,
      })
      mustBeLetThrough(answer)
    },
  }
}

function toCommon({ accountId, keyId, metadata }: RunFacts): JsonObject {
  return { account: accountId, key_id: keyId, metadata: { ...metadata } }
}

/** What is wrong with the inputs is the hook's fault; that the store is away, for one, is not. */
function toFault(error: unknown): never {
  const isOfInputs = error instanceof ServiceError && error.refusal === 'invalid_input'
  throw isOfInputs ? new HookFault(`its inputs do not fit: ${error.message}`, { cause: error }) : error
}

function mustBeLetThrough(
  answer: HookAnswer<unknown>,
): asserts answer is Extract<HookAnswer<never>, { answer: 'allow' }> | { answer: 'change'; change: never } {
  if (answer.answer === 'refuse') throw new ServiceError('refused_by_policy', answer.message)
  if (answer.answer !== 'failed') return
  const message = 'the check that the operator of this service demands could not be made; send the request again later'
  throw new ServiceError('check_unavailable', message, { retryAfterSeconds: RETRY_SECONDS })
}
