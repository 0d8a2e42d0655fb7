/**
 * What the author of an endpoint says beside the workflow, applied to the proposal: which inputs there are, under which names, in
 * which order, within which narrower bounds. Nothing is taken that the classes of the graph would refuse.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { closestWord } from '../../../lib/text/closest-word.ts'
import { isPlainLine, isPlainText } from '../../../lib/text/plain-text.ts'
import { invalidField } from '../errors.ts'
import type { EndpointInput, EndpointOutput } from './endpoint.ts'
import { fillGraph } from './fill-graph.ts'
import { declareParameters } from './image-parameters.ts'
import { checkDefault, narrowInput } from './narrow-input.ts'
import { NAME, RESERVED } from './propose/names.ts'
import type { Proposal } from './propose/propose.ts'

interface DeclaredEndpoint {
  /** null: not said. */
  readonly title: string | null
  readonly description: string | null
  /** With the values of inputs that were hidden with a value of their own. */
  readonly graph: JsonObject
  readonly inputs: readonly EndpointInput[]
  readonly outputs: readonly EndpointOutput[]
}

type Proposed = Pick<Proposal, 'graph' | 'inputs' | 'candidates' | 'outputs'>

const MAX_ENTRIES = 200
const MAX_TITLE = 200
const MAX_DESCRIPTION = 10_000

const MEMBERS = ['title', 'description', 'only', 'inputs', 'outputs', 'openai']

/** `declaration`: the parsed YAML or JSON. Refuses with `invalid_field`, naming the input. */
export function applyDeclaration(proposal: Proposed, declaration: JsonValue): DeclaredEndpoint {
  const said = readObject(declaration ?? {}, 'declaration')
  refuseUnknown(said, MEMBERS, 'declaration')
  const { only = false } = said
  if (typeof only !== 'boolean') throw invalidField('only', 'must be true or false')
  const { inputs, graph } = declareInputs(proposal, readEntries(said['inputs'], 'inputs'), only)
  return {
    title: readText(said, 'title', { field: 'title', max: MAX_TITLE }),
    description: readText(said, 'description', { field: 'description', max: MAX_DESCRIPTION }),
    graph,
    inputs: declareParameters(inputs, said['openai'] ?? null),
    outputs: declareOutputs(proposal, readEntries(said['outputs'], 'outputs'), only),
  }
}

interface Entry {
  readonly name: string
  readonly field: string
  readonly said: JsonObject
}

/** By name, or as a list of objects with a `name`. A bare text says where the value is; nothing at all accepts the proposal. */
function readEntries(value: JsonValue | undefined, member: string): Entry[] {
  if (value === undefined || value === null) return []
  const named: [JsonValue | undefined, JsonValue][] = Array.isArray(value)
    ? value.map((each) => [isJsonObject(each) ? each['name'] : undefined, each])
    : Object.entries(readObject(value, member))
  if (named.length > MAX_ENTRIES) throw invalidField(member, `must have at most ${MAX_ENTRIES} entries`)
  const names = new Set<string>()
  return named.map(([name, entry], index) => {
    if (typeof name !== 'string') throw invalidField(`${member}[${index}]`, 'must be an object with a name')
    const field = `${member}.${name.slice(0, 80)}`
    if (!NAME.test(name)) {
      throw invalidField(
        field,
        'must be named in lower case: a letter, then letters, digits and _, at most 64 characters',
      )
    }
    if (RESERVED.has(name)) throw invalidField(field, `must not be called ${name}: a call has that word for itself`)
    if (names.has(name)) throw invalidField(field, 'is declared twice')
    names.add(name)
    const said =
      entry === null || entry === true ? {} : typeof entry === 'string' ? { from: entry } : readObject(entry, field)
    const { name: _, ...rest } = said
    return { name, field, said: Array.isArray(value) ? rest : said }
  })
}

const INPUT_MEMBERS = [
  ...[
    'from',
    'title',
    'description',
    'required',
    'default',
    'hidden',
    'remove',
    'choices',
    'minimum',
    'maximum',
    'pattern',
  ],
  ...['min_length', 'max_length', 'max_pixels', 'max_bytes', 'kind'],
]

function declareInputs(proposal: Proposed, entries: readonly Entry[], only: boolean) {
  const find = createFindSource(proposal)
  const taken = new Map<EndpointInput, Entry>()
  const declared: EndpointInput[] = []
  const fixed: { readonly input: EndpointInput; readonly value: JsonValue }[] = []
  for (const entry of entries) {
    const { name, field, said } = entry
    refuseUnknown(said, INPUT_MEMBERS, field)
    const source = find(entry)
    const other = taken.get(source)
    if (other !== undefined) throw invalidField(field, `sets the same value of the graph as ${other.field}`)
    taken.set(source, entry)
    const isHidden = readSwitch(said, 'hidden', field) === true || readSwitch(said, 'remove', field) === true
    if (!isHidden) declared.push(declareInput(source, entry))
    else if (Object.hasOwn(said, 'default')) {
      const value = checkDefault(source, said['default'], `${field}.default`)
      fixed.push({ input: { ...source, name }, value })
    }
  }
  const rest = only ? [] : proposal.inputs.filter((input) => !taken.has(input))
  const inputs = [...declared, ...rest]
  const names = new Set<string>()
  for (const { name } of inputs) {
    if (names.has(name))
      throw invalidField(`inputs.${name}`, 'is the name of another input of the proposal, too: rename or hide that one')
    names.add(name)
  }
  const values = Object.fromEntries(fixed.map(({ input, value }) => [input.name, value]))
  return {
    inputs,
    graph: fillGraph(
      proposal.graph,
      fixed.map(({ input }) => input),
      values,
    ),
  }
}

function declareInput(source: EndpointInput, { name, field, said }: Entry): EndpointInput {
  const title = readText(said, 'title', { field: `${field}.title`, max: MAX_TITLE }) ?? source.title
  const description =
    readText(said, 'description', { field: `${field}.description`, max: MAX_DESCRIPTION }) ?? source.description
  return narrowInput({ ...source, name, title, description }, said, field)
}

type FindSource = (entry: Entry) => EndpointInput

/** By the name in the proposal, or by a place: `6.text`. */
function createFindSource({ inputs, candidates }: Proposed): FindSource {
  const all = [...inputs, ...candidates]
  const byName = new Map(all.map((input) => [input.name, input]))
  const byPlace = new Map(
    all.flatMap((input) => input.places.map(({ nodeId, input: at }) => [`${nodeId}.${at}`, input])),
  )
  return ({ name, field, said }) => {
    const { from = name } = said
    if (typeof from !== 'string')
      throw invalidField(`${field}.from`, 'must be a text: "6.text", or a name of the proposal')
    const found = byName.get(from) ?? byPlace.get(from)
    if (found !== undefined) return found
    const near = from.length <= 80 ? closestWord(from, [...byName.keys()]) : null
    const hint = near === null ? '' : `; did you mean ${near}?`
    const shown = JSON.stringify(from.slice(0, 80))
    throw invalidField(
      said['from'] === undefined ? field : `${field}.from`,
      `names no value of the graph that could be an input: ${shown}${hint}`,
    )
  }
}

const OUTPUT_MEMBERS = ['from', 'title', 'kind', 'hidden', 'remove']
const OUTPUT_KINDS: readonly EndpointOutput['kind'][] = ['image', 'mask', 'video', 'audio', 'model3d', 'file', 'text']

function declareOutputs({ graph, outputs }: Proposed, entries: readonly Entry[], only: boolean): EndpointOutput[] {
  const taken = new Map<string, string>()
  const declared: EndpointOutput[] = []
  for (const { name, field, said } of entries) {
    refuseUnknown(said, OUTPUT_MEMBERS, field)
    const { from = name, kind } = said
    const id = typeof from === 'number' ? String(from) : from
    if (typeof id !== 'string')
      throw invalidField(`${field}.from`, 'must be the id of a node, or a name of the proposal')
    const known = outputs.find((output) => output.name === id) ?? outputs.find(({ nodeId }) => nodeId === id)
    if (known === undefined && !Object.hasOwn(graph, id)) {
      throw invalidField(`${field}.from`, `names no output of the graph: ${JSON.stringify(id.slice(0, 80))}`)
    }
    const given = OUTPUT_KINDS.find((each) => each === kind)
    if (kind !== undefined && given === undefined)
      throw invalidField(`${field}.kind`, `must be one of ${OUTPUT_KINDS.join(', ')}`)
    const nodeId = known?.nodeId ?? id
    const other = taken.get(nodeId)
    if (other !== undefined) throw invalidField(field, `is the same output of the graph as ${other}`)
    taken.set(nodeId, field)
    if (readSwitch(said, 'hidden', field) === true || readSwitch(said, 'remove', field) === true) continue
    const title = readText(said, 'title', { field: `${field}.title`, max: MAX_TITLE }) ?? known?.title ?? name
    declared.push({ name, title, nodeId, kind: given ?? known?.kind ?? 'file' })
  }
  const all = [...declared, ...(only && declared.length > 0 ? [] : outputs.filter(({ nodeId }) => !taken.has(nodeId)))]
  const names = new Set<string>()
  for (const { name } of all) {
    if (names.has(name))
      throw invalidField(
        `outputs.${name}`,
        'is the name of another output of the proposal, too: rename or hide that one',
      )
    names.add(name)
  }
  return all
}

function readObject(value: JsonValue, field: string): JsonObject {
  if (!isJsonObject(value)) throw invalidField(field, 'must be an object')
  return value
}

function refuseUnknown(said: JsonObject, members: readonly string[], field: string): void {
  const unknown = Object.keys(said).find((member) => !members.includes(member))
  if (unknown === undefined) return
  const near = unknown.length <= 40 ? closestWord(unknown, members) : null
  throw invalidField(
    `${field}.${unknown.slice(0, 80)}`,
    `is not known here${near === null ? '' : `; did you mean ${near}?`}`,
  )
}

function readText(
  said: JsonObject,
  member: string,
  { field, max }: { readonly field: string; readonly max: number },
): string | null {
  const { [member]: value = null } = said
  if (value === null) return null
  if (typeof value !== 'string' || value.length > max)
    throw invalidField(field, `must be a text of at most ${max} characters`)
  if (!(member === 'title' ? isPlainLine(value) : isPlainText(value)))
    throw invalidField(field, 'must have no control characters, and none that turn its order around')
  return value
}

function readSwitch(said: JsonObject, member: string, field: string): boolean | null {
  const { [member]: value = null } = said
  if (value !== null && typeof value !== 'boolean') throw invalidField(`${field}.${member}`, 'must be true or false')
  return value
}
