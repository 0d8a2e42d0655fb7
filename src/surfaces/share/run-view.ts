/** The endpoint and a run as a visitor sees them: what he gives and gets, and nothing of how it is made. Pure. */
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import type { EndpointInput, EndpointVersion } from '../../domain/endpoints/endpoint.ts'
import type { Resolved } from '../../domain/endpoints/reach.ts'
import type { Share } from '../../domain/endpoints/shares/share.ts'
import type { SharedRun } from '../../domain/endpoints/shares/shared-runs.ts'
import type { Job, Output } from '../../domain/jobs/job.ts'
import { isTerminal } from '../../domain/jobs/transitions.ts'
import { toSafeFailure } from './share-errors.ts'

/** `takesUrls`: files may be named by their address. */
export function toPageView({ endpoint, version }: Resolved, share: Share): JsonObject {
  return {
    ...{ title: endpoint.title === '' ? endpoint.name : endpoint.title, description: endpoint.description },
    inputs: version.inputs.map(toInputView),
    outputs: version.outputs.map(({ name, title, kind }) => ({ name, title, kind })),
    expires_at: share.expiresAt.toISOString(),
  }
}

/** As the console's form knows inputs. */
function toInputView(input: EndpointInput): JsonObject {
  const { name, title, description, isRequired } = input
  const common = { name, title, description, type: input.type, required: isRequired }
  switch (input.type) {
    case 'text': {
      const { default: preset, minLength, maxLength, isMultiline, example } = input
      const bounds = { min_length: minLength, max_length: maxLength, multiline: isMultiline }
      return { ...common, default: preset, example, ...bounds }
    }
    case 'integer':
    case 'number': {
      const { default: preset, minimum, maximum, example } = input
      return { ...common, default: preset, example, minimum, maximum }
    }
    case 'seed':
      return { ...common, minimum: input.minimum, maximum: input.maximum }
    case 'boolean':
      return { ...common, default: input.default }
    case 'choice':
      return {
        ...common,
        default: input.default,
        example: input.example,
        choices: [...input.choices],
        open: input.isOpen,
      }
    case 'file':
      return { ...common, kind: input.kind, max_bytes: input.maxBytes }
  }
}

/** `base`: the address of the link's runs. */
export function toRunView({ token, job, version, inputs }: SharedRun, base: string): JsonObject {
  const self = `${base}/${token}`
  return {
    run: token,
    status: job.status === 'canceling' ? 'running' : job.status,
    created_at: job.createdAt.toISOString(),
    completed_at: job.completedAt?.toISOString() ?? null,
    expires_at: job.expiresAt.toISOString(),
    queue_position: job.status === 'queued' ? job.queuePosition : null,
    progress: toProgress(job),
    inputs: inputs === null || version === null ? null : toUsedInputs(version, inputs, self),
    outputs: visibleOutputs(job, version).map(({ output, index, name, title, kind }) => ({
      ...{ name, title, kind, content_type: output.contentType, size_bytes: output.sizeBytes },
      url: `${self}/outputs/${index}`,
    })),
    error: job.error === null ? null : toSafeFailure(job.error),
  }
}

function toProgress({ status, progress }: Job): JsonObject | null {
  if (progress === null || isTerminal(status)) return null
  const { value, step, steps } = progress
  return { value, step, steps }
}

/** A file as an address of its bytes: what the account knows it by is not the visitor's. */
function toUsedInputs({ inputs }: EndpointVersion, used: JsonObject, self: string): JsonObject {
  return Object.fromEntries(
    inputs.flatMap(({ name, type }): [string, JsonValue][] => {
      if (!Object.hasOwn(used, name)) return []
      return [[name, type === 'file' ? { url: `${self}/inputs/${encodeURIComponent(name)}` } : used[name]]]
    }),
  )
}

/** Of the nodes that the version names as its outputs; whatever else a run stores stays with its owner. */
export function visibleOutputs(job: Job, version: EndpointVersion | null) {
  return job.outputs.flatMap((output: Output, index) => {
    const named = version?.outputs.find(({ nodeId }) => nodeId === output.nodeId)
    return named === undefined ? [] : [{ output, index, ...named }]
  })
}
