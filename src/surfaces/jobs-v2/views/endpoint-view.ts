/** Endpoints and their versions in the words of the wire. Numbers keep their digits, so answers are written losslessly. */
import {
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import {
  type Endpoint,
  type EndpointInput,
  type EndpointOutput,
  type EndpointVersion,
  nameFor,
  type VersionRelease,
} from '../../../domain/endpoints/endpoint.ts'
import type { VersionSummary } from '../../../domain/endpoints/endpoint-store.ts'
import { toInputSchema } from '../../../domain/endpoints/input-schema.ts'
import type { Draft, MissingOfVersion, PublishAnswer } from '../../../domain/endpoints/manage-endpoints.ts'
import type { EndpointRun } from '../../../domain/endpoints/run-endpoint.ts'
import { toResults } from '../../../domain/endpoints/run-results.ts'
import type { VersionDifference } from '../../../domain/endpoints/versions.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { ConvertWarning } from '../../../domain/workflows/convert/prompt/write-prompt.ts'
import { toEndpointPriceView, toLimitsView } from './endpoint-limits.ts'
import { API_PATH, type LinkBase, toOutputText, type ViewBase } from './job-view.ts'

export const ENDPOINTS_PATH = `${API_PATH}/endpoints`

/** As an account knows it: of another one's endpoint it sees what a caller needs, under the name by which it is called. */
export function toCalled<Known extends Endpoint>(endpoint: Known, accountId: string): Known {
  if (endpoint.accountId === accountId) return endpoint
  const settings = { ...endpoint.settings, deployment: null, isTool: false, models: [], callers: [] }
  return { ...endpoint, name: nameFor(accountId, endpoint), settings }
}

/** `missing`: what no engine has of what the current version needs; left out: the engines were not looked at. */
export function toEndpointView(
  endpoint: Endpoint,
  { origin, mountPrefix }: LinkBase,
  missing?: MissingOfVersion,
): JsonObject {
  const { name, settings, currentVersion, lastVersion } = endpoint
  const isOfOther = name.includes('/')
  const self = `${origin}${mountPrefix}${ENDPOINTS_PATH}/${encodeURIComponent(name)}`
  const isBlocked =
    missing !== undefined && (missing.classes.length + missing.weights.length > 0 || missing.release !== undefined)
  return {
    ...{ name, title: endpoint.title, description: endpoint.description },
    owner: endpoint.isOfService === true ? 'service' : isOfOther ? 'other_account' : 'account',
    state: endpoint.state === 'ready' && isBlocked ? 'blocked' : endpoint.state,
    ...{ current_version: currentVersion, latest_version: lastVersion, aliases: { ...endpoint.aliases } },
    ...{ deployment: settings.deployment, tool: settings.isTool, models: [...settings.models] },
    callers: [...settings.callers],
    ...{ limits: toLimitsView(settings.limits), price: toEndpointPriceView(settings.price) },
    // What it is made of is its owner's business.
    ...(missing !== undefined && !isOfOther && { missing: toMissingView(missing) }),
    ...{ created_at: endpoint.createdAt.toISOString(), updated_at: endpoint.updatedAt.toISOString() },
    revision: endpoint.revision,
    urls: {
      self,
      runs: `${self}/runs`,
      schema: `${self}/schema`,
      openapi: `${self}/openapi.json`,
      docs: `${self}/docs`,
    },
  }
}

export function toMissingView({ classes, weights, release }: MissingOfVersion) {
  return {
    classes: classes.map(({ classType, nodeIds }) => ({ class_type: classType, node_ids: [...nodeIds] })),
    weights: weights.map(({ name, nodeId, input }) => ({ name, node_id: nodeId, input })),
    ...(release !== undefined && { release: toReleaseView(release, release.served) }),
  }
}

function toReleaseView({ deployment, version, isPinned }: VersionRelease, served: number | null) {
  return { deployment, version, pinned: isPinned, served }
}

export type ServedOf = (release: VersionRelease) => number | null

export function toVersionSummaryView(
  { number, hash, note, createdAt, createdBy, required: { release } }: VersionSummary,
  servedOf: ServedOf,
): JsonObject {
  return {
    ...{ version: number, hash, note, created_at: createdAt.toISOString(), created_by: createdBy },
    ...(release !== undefined && { release: toReleaseView(release, servedOf(release)) }),
  }
}

export function toVersionView(version: EndpointVersion, servedOf: ServedOf): JsonObject {
  const { inputs, outputs, required, graph } = version
  return {
    ...toVersionSummaryView(version, servedOf),
    inputs: inputs.map(toInputView),
    outputs: outputs.map(toOutputView),
    required: {
      classes: [...required.classes],
      weights: required.weights.map(({ folder, name }) => ({ folder, name })),
    },
    workflow: parseLosslessJson(graph),
  }
}

/** Of another account's endpoint: what a caller gives and gets, and nothing of how it is made. */
export function toCalledVersionView({ number, hash, createdAt, inputs, outputs }: EndpointVersion): JsonObject {
  return {
    ...{ version: number, hash, note: '', created_at: createdAt.toISOString(), created_by: null },
    inputs: inputs.map((input) => toInputView({ ...input, places: [] })),
    outputs: outputs.map(({ name, title, kind }) => ({ name, title, kind })),
  }
}

function toInputView(input: EndpointInput): JsonObject {
  const { name, title, description, isRequired, example, places, parameters } = input
  return {
    ...{ name, title, description, type: input.type, required: isRequired, example },
    ...toOwnMembers(input),
    places: places.map(({ nodeId, input: path }) => ({ node_id: nodeId, input: path })),
    ...(parameters !== undefined && { parameters: parameters.map((each) => ({ ...each }) as JsonObject) }),
  }
}

/** What inputs of this type have beside what all have. */
function toOwnMembers(input: EndpointInput): JsonObject {
  switch (input.type) {
    case 'text': {
      const { minLength, maxLength, pattern, isMultiline } = input
      const bounds = { min_length: minLength, max_length: maxLength, pattern, multiline: isMultiline }
      return { default: input.default, ...bounds }
    }
    case 'integer':
    case 'number':
      return { default: input.default, minimum: input.minimum, maximum: input.maximum, step: input.step }
    case 'seed':
      return { minimum: input.minimum, maximum: input.maximum }
    case 'boolean':
      return { default: input.default }
    case 'choice':
      return { default: input.default, choices: [...input.choices], open: input.isOpen }
    case 'file':
      return { kind: input.kind, max_bytes: input.maxBytes, max_pixels: input.maxPixels }
  }
}

function toOutputView({ name, title, kind, nodeId }: EndpointOutput): JsonObject {
  return { name, title, kind, node_id: nodeId }
}

function toWarningViews(warnings: readonly ConvertWarning[]): JsonValue[] {
  return warnings.map(({ nodeId, input, message }) => ({ node_id: nodeId, input, message }))
}

export function toDraftText(draft: Draft): string {
  const { title, description, inputs, outputs, candidates, graph, warnings, missing } = draft
  return stringifyLosslessJson({
    ...{ title, description, inputs: inputs.map(toInputView), outputs: outputs.map(toOutputView) },
    candidates: candidates.map(toInputView),
    workflow: parseLosslessJson(graph),
    schema: toInputSchema(inputs),
    ...{ warnings: toWarningViews(warnings), missing: toMissingView(missing) },
  })
}

export function toPublishedText(published: PublishAnswer, base: LinkBase, servedOf: ServedOf): string {
  const { endpoint, version, isNew, differences, warnings, missing } = published
  return stringifyLosslessJson({
    endpoint: toEndpointView(endpoint, base, missing),
    version: toVersionView(version, servedOf),
    is_new: isNew,
    differences: differences.map(toDifferenceView),
    ...{ warnings: toWarningViews(warnings), missing: toMissingView(missing) },
  })
}

export function toDifferenceView({ kind, name, isBreaking, message }: VersionDifference): JsonObject {
  return { kind, name, breaking: isBreaking, message }
}

/** The job's own bytes, with what the caller of an endpoint wants to know beside them. */
export function toRunBytes(
  jobBytes: Buffer,
  {
    job,
    inputs,
    outputs,
  }: { readonly job: Job; readonly inputs: JsonValue; readonly outputs: readonly EndpointOutput[] },
  base: ViewBase,
): Buffer {
  const results = toResults(job, outputs).map(({ name, made }) => {
    return `${JSON.stringify(name)}:[${made.map((output) => toOutputText(output, job, base)).join(',')}]`
  })
  const more = `,"inputs":${stringifyLosslessJson(inputs)},"results":{${results.join(',')}}}`
  return Buffer.concat([jobBytes.subarray(0, -1), Buffer.from(more)])
}

/** One file with all that a publish elsewhere needs. */
export function toExportText({ endpoint, version }: Pick<EndpointRun, 'endpoint' | 'version'>): string {
  const { title, description, settings, name } = endpoint
  // A model may take what its workflow has no use for.
  const inputs = version.inputs.filter(({ places }) => places.length > 0)
  const { classes, weights } = version.required
  return stringifyLosslessJson({
    atelier_endpoint: 1,
    ...{ name, title, description, tool: settings.isTool, models: [...settings.models] },
    // The release belongs to a deployment, which an export does not name.
    version: toVersionView({ ...version, inputs, required: { classes, weights } }, () => null),
  })
}
