/** What a caller of an endpoint is told of a refusal: under the names of its inputs, and nothing of a workflow that is another account's. */
import type { FieldError } from '../../../engine/graph/graph.ts'
import { isJsonObject, type JsonObject } from '../../../lib/json/lossless-json.ts'
import { ServiceError } from '../errors.ts'
import { RouterError } from '../models/router-error.ts'
import { type EndpointVersion, type InputProblem, nameFor, type Place } from './endpoint.ts'
import type { Resolved } from './reach.ts'
import { cannotRun } from './release.ts'

export function invalidInput(problems: readonly InputProblem[]): ServiceError {
  const [first] = problems
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  return new ServiceError('invalid_input', `${first?.message}${more}`, { details: { inputs: problems } })
}

/** What an engine has against a value of the caller is told under the name of its input. */
function toInputRefusal(error: unknown, { inputs }: EndpointVersion): unknown {
  if (!(error instanceof ServiceError) || error.refusal !== 'invalid_workflow') return error
  const nodes = error.details?.['node_errors']
  if (!isJsonObject(nodes)) return error
  const problems: InputProblem[] = []
  for (const { name, places } of inputs) {
    for (const { nodeId, input } of places) {
      const found = errorsOf(nodes, nodeId).find((each) => each.field === input)
      if (found === undefined) continue
      problems.push({ name, reason: 'not_available', message: `${name}: ${found.message}` })
      break
    }
  }
  return problems.length === 0 ? error : invalidInput(problems)
}

/** A caller of another account cannot mend what its owner has published, and must not learn from a refusal what that is made of. */
export function toTold(error: unknown, { endpoint, version }: Resolved, accountId: string): unknown {
  const told = toInputRefusal(error, version)
  if (endpoint.accountId === accountId || !(told instanceof ServiceError)) return told
  if (told.refusal === 'invalid_workflow' || told.refusal === 'missing_asset')
    return cannotRun(nameFor(accountId, endpoint))
  if (told.refusal === 'forbidden' && told.cause instanceof RouterError) return mayNotUse(nameFor(accountId, endpoint))
  if (told.refusal !== 'invalid_input') return told
  const problems = (told.details?.['inputs'] ?? []) as readonly InputProblem[]
  return invalidInput(
    problems.map((problem) =>
      problem.reason === 'not_available'
        ? { name: problem.name, reason: problem.reason, message: `${problem.name}: this is not available there` }
        : problem,
    ),
  )
}

/** Which model it is, only its owner's workflow says. */
function mayNotUse(name: string): ServiceError {
  return new ServiceError(
    'forbidden',
    `the endpoint ${name} calls a model that this account may not use; ask the operator of the service, or the owner of the endpoint`,
  )
}

/** Without what is said of these values of the graph, none of which is the one that would run. */
export function withoutPlaces(complaint: ServiceError, places: readonly Place[]): ServiceError[] {
  const nodes = complaint.refusal === 'invalid_workflow' ? complaint.details?.['node_errors'] : null
  if (!isJsonObject(nodes) || places.length === 0) return [complaint]
  const isAbout = (id: string, field: string) => places.some(({ nodeId, input }) => nodeId === id && input === field)
  const told = Object.keys(nodes).flatMap((id) => errorsOf(nodes, id).map((error) => ({ id, error })))
  const left = told.filter(({ id, error }) => !isAbout(id, error.field))
  if (left.length === told.length) return [complaint]
  if (left.length === 0) return []
  const byNode = Map.groupBy(left, ({ id }) => id)
  const nodeErrors = Object.fromEntries([...byNode].map(([id, own]) => [id, own.map(({ error }) => error)]))
  const [{ id, error }] = left
  const details = { ...complaint.details, node_errors: nodeErrors }
  return [new ServiceError('invalid_workflow', `Node ${id}: ${error.message}`, { details })]
}

function errorsOf(nodes: JsonObject, nodeId: string): readonly FieldError[] {
  const errors: unknown = Object.hasOwn(nodes, nodeId) ? nodes[nodeId] : null
  return Array.isArray(errors) ? (errors as FieldError[]) : []
}
