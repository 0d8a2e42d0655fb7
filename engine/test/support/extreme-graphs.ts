/**
 * A graph for every class of a catalog with inputs at the ends of what their declarations allow: the least of everything, or the
 * most of it over one large picture, over a batch of many, or over a list of many. What a class links to is made by other nodes.
 */
import sharp from 'sharp'
import { NumberText } from '../../../lib/json/lossless-json.ts'
import type { NodeCatalog } from '../../graph/node-catalog.ts'
import type { GraphJson } from './harness.ts'

export const EXTREMES = ['large', 'many', 'listed', 'least'] as const
export type Extreme = (typeof EXTREMES)[number]

type Options = Readonly<Record<string, unknown>>
type Link = readonly [nodeId: string, slot: number]
type Inputs = Record<string, unknown>
type Section = Readonly<Record<string, readonly [unknown, Options?]>>
interface Sections {
  readonly required?: Section
  readonly optional?: Section
}

const LONG_TEXT = 'a(b '.repeat(65_536)

const SIZES: Readonly<Record<Extreme, { readonly side: number; readonly count: number }>> = {
  least: { side: 1, count: 1 },
  large: { side: 4096, count: 1 },
  many: { side: 64, count: 4096 },
  listed: { side: 16, count: 2048 },
}

/** The files that loaders are given. */
export async function extremeFiles(): Promise<Record<string, Uint8Array>> {
  const picture = { create: { width: 6000, height: 6000, channels: 3, background: '#123456' } } as const
  return { [FILE_NAME]: await sharp(picture).png({ compressionLevel: 1 }).toBuffer() }
}
const FILE_NAME = 'set/extreme.png'
const FOLDER_NAME = 'set'

/** A float's neighbours of 2^64 are not all within it. */
const toNumber = (value: unknown) => {
  const number = value instanceof NumberText ? Number(value.text) : Number(value)
  return Math.max(-1e18, Math.min(number, 1e18))
}

class ExtremeGraph {
  readonly nodes: GraphJson = {}
  readonly #catalog: NodeCatalog
  readonly #extreme: Extreme
  /** Sources that are there already, by type. */
  readonly #sources = new Map<string, Link>()

  constructor(catalog: NodeCatalog, extreme: Extreme) {
    this.#catalog = catalog
    this.#extreme = extreme
  }

  add(class_type: string, inputs: Inputs): string {
    const id = String(Object.keys(this.nodes).length + 1)
    this.nodes[id] = { class_type, inputs }
    return id
  }

  /** A node of this class with every input of it. */
  addExtreme(classType: string): string {
    const { input } = this.#catalog.find(classType) as unknown as { readonly input: Sections }
    return this.add(classType, this.#inputsOf(input, ''))
  }

  #inputsOf({ required = {}, optional = {} }: Sections, prefix: string): Inputs {
    const inputs: Inputs = {}
    for (const [name, [type, options = {}]] of Object.entries({ ...required, ...optional })) {
      Object.assign(inputs, this.#input(`${prefix}${name}`, type, options))
    }
    return inputs
  }

  #input(path: string, type: unknown, options: Options): Inputs {
    if (type === 'COMFY_AUTOGROW_V3') return this.#grown(path, options['template'] as Options)
    if (type === 'COMFY_DYNAMICCOMBO_V3') {
      const choice = this.#end(options['options'] as readonly { key: string; inputs: Sections }[])
      return { [path]: choice.key, ...this.#inputsOf(choice.inputs, `${path}.`) }
    }
    const named: Inputs = { folder: FOLDER_NAME, mask: FILE_NAME }
    if (path in named && typeof this.#constant(type, options) === 'string') return { [path]: named[path] }
    return { [path]: this.#constant(type, options) ?? this.link(toLinkType(type, options)) }
  }

  #grown(path: string, template: Options): Inputs {
    const { prefix, names, max, input } = template as {
      prefix?: string
      names?: string[]
      max?: number
      input: Sections
    }
    const all = names ?? Array.from({ length: Math.min(max ?? 10, 20) }, (_, index) => `${prefix}${index}`)
    const [[type, options = {}]] = Object.values(input.required ?? {})
    const chosen = this.#extreme === 'least' ? all.slice(0, 1) : all
    return Object.assign({}, ...chosen.map((name) => this.#input(`${path}.${name}`, type, options)))
  }

  #end<Item>(items: readonly Item[]): Item {
    return items[this.#extreme === 'least' ? 0 : items.length - 1]
  }

  /** undefined for what only a link can bring. */
  #constant(type: unknown, options: Options): unknown {
    const isLeast = this.#extreme === 'least'
    const choices = Array.isArray(type) ? type : options['options']
    if (Array.isArray(type) || type === 'COMBO') return this.#end((choices ?? []) as unknown[]) ?? FILE_NAME
    switch (String(type).split(',')[0]) {
      case 'INT':
      case 'FLOAT':
        return toNumber(options[isLeast ? 'min' : 'max'] ?? options['default'] ?? 1)
      case 'BOOLEAN':
        return !isLeast
      case 'STRING':
        return isLeast ? '' : LONG_TEXT
      case 'COLOR':
        return '#ffffff'
      case 'DICT':
        return {}
      case 'ARRAY':
        return { __value__: [] }
      case 'WEBCAM':
        return FILE_NAME
      case 'IMAGECOMPARE':
        return ''
      default:
        return undefined
    }
  }

  link(type: string): Link {
    const known = this.#sources.get(type)
    if (known !== undefined) return known
    const made = this.#source(type)
    this.#sources.set(type, made)
    return made
  }

  #source(type: string): Link {
    const { side, count } = SIZES[this.#extreme]
    if (type === 'IMAGE') return this.#images(side, count)
    if (type === 'MASK') return [this.add('ImageToMask', { image: this.link('IMAGE'), channel: 'red' }), 0]
    if (type === 'LATENT') {
      const width = Math.max(16, Math.min(side * 4, 16_384))
      return [this.add('EmptyLatentImage', { width, height: width, batch_size: count }), 0]
    }
    if (type === 'AUDIO') {
      const duration = this.#extreme === 'least' ? 0 : 600
      return [this.add('EmptyAudio', { duration, sample_rate: 44_100, channels: 2 }), 0]
    }
    if (type === 'VIDEO') return [this.add('CreateVideo', { images: this.link('IMAGE'), fps: 30 }), 0]
    if (type === 'SIGMAS') {
      const steps = this.#extreme === 'least' ? 1 : 10_000
      return [this.add('KarrasScheduler', { steps, sigma_max: 14.6, sigma_min: 0.03, rho: 7 }), 0]
    }
    const maker = this.#catalog.classTypes().find((name) => makes(this.#catalog.find(name), type))
    return maker === undefined ? this.link('IMAGE') : [this.addExtreme(maker), 0]
  }

  #images(side: number, count: number): Link {
    const images: Link = [this.add('EmptyImage', { width: side, height: side, batch_size: count, color: 0x336699 }), 0]
    if (this.#extreme !== 'listed') return images
    return [this.add('RebatchImages', { images, batch_size: 1 }), 0]
  }
}

/** Not of one of its kind. */
function makes(definition: ReturnType<NodeCatalog['find']>, type: string): boolean {
  return definition?.output[0] === type && !JSON.stringify(definition.input).includes(`"${type}"`)
}

function toLinkType(type: unknown, options: Options): string {
  if (type !== 'COMFY_MATCHTYPE_V3') return String(type)
  const { allowed_types: allowed } = options['template'] as { allowed_types: string }
  return allowed.split(',')[0]
}

/** Ends in an output node, so that the class is run. */
export function extremeGraph(catalog: NodeCatalog, classType: string, extreme: Extreme): GraphJson {
  const graph = new ExtremeGraph(catalog, extreme)
  const id = graph.addExtreme(classType)
  const { output, output_node: isOutput } = catalog.find(classType)!
  if (isOutput || output.length === 0) return graph.nodes
  if (output[0] === 'IMAGE') graph.add('SaveImage', { images: [id, 0], filename_prefix: 'extreme' })
  else graph.add('PreviewAny', { source: [id, 0] })
  return graph.nodes
}
