/**
 * Graphs of partner nodes in API format, made after what the server says about its classes: what a step does not set has the
 * server's default, as in the editor. So one list of steps serves several versions of ComfyUI.
 */
import { node, type Workflow } from '../clients/checked-client.ts'

type InputSpec = readonly [type: unknown, options?: { readonly default?: unknown; readonly options?: unknown }]

export interface ClassInfo {
  readonly input: {
    readonly required?: Readonly<Record<string, InputSpec>>
    readonly optional?: Readonly<Record<string, InputSpec>>
  }
  readonly output: readonly string[]
}

export interface PartnerStep {
  readonly class: string
  readonly inputs?: Readonly<Record<string, unknown>>
}

/** What partner nodes take, made by nodes that need no weights. */
export const PICTURE = ['picture', 0] as const
const SOURCES: Readonly<Record<string, object>> = {
  picture: node('EmptyImage', { width: 512, height: 512, batch_size: 1, color: 0x336699 }),
  mask: node('SolidMask', { value: 1, width: 512, height: 512 }),
  frames: node('EmptyImage', { width: 720, height: 720, batch_size: 16, color: 0x996633 }),
  film: node('CreateVideo', { images: ['frames', 0], fps: 4 }),
}
const SOURCE_OF: Readonly<Record<string, string>> = { IMAGE: 'picture', MASK: 'mask', VIDEO: 'film' }

/** ComfyUI runs only what somebody reads. */
const SINK_OF: Readonly<Record<string, (from: readonly [string, number]) => object>> = {
  IMAGE: (from) => node('SaveImage', { images: from, filename_prefix: from[0] }),
  VIDEO: (from) => node('SaveVideo', { video: from, filename_prefix: from[0], format: 'auto', codec: 'auto' }),
  STRING: (from) => node('PreviewAny', { source: from }),
  SVG: (from) => node('SaveSVGNode', { svg: from, filename_prefix: from[0] }),
}

/** All of `steps` in one graph; the id of each is its class. ComfyUI runs partner nodes side by side. */
export function toPartnerGraph(steps: readonly PartnerStep[], classes: Readonly<Record<string, ClassInfo>>): Workflow {
  const graph: Record<string, object> = { ...SOURCES }
  for (const { class: name, inputs } of steps) {
    const { input, output } = classes[name]
    const required = Object.entries(input.required ?? {}).map(([field, spec]) => [field, toValue(spec)])
    const optional = Object.entries(input.optional ?? {}).map(([field, spec]) => [field, toWidget(spec)])
    const set = optional.filter(([, value]) => value !== undefined)
    const texts = 'prompt' in (input.required ?? {}) ? { prompt: 'a lighthouse at night' } : {}
    graph[name] = node(name, { ...Object.fromEntries([...required, ...set]), ...texts, ...inputs })
    const sink = SINK_OF[output[0]]
    if (sink !== undefined) graph[`${name} kept`] = sink([name, 0])
  }
  return graph
}

function toValue(spec: InputSpec): unknown {
  const source = SOURCE_OF[String(spec[0])]
  return source === undefined ? (toWidget(spec) ?? '') : [source, 0]
}

/** What the editor's field shows at first; undefined: it is an input for a link. */
function toWidget([type, options]: InputSpec): unknown {
  const listed = Array.isArray(type) ? type : options?.options
  return options?.default ?? (Array.isArray(listed) ? listed[0] : undefined)
}
