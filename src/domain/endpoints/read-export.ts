/**
 * A file that an export wrote, read as what an author could have said: the graph, and a declaration of its inputs and outputs. So
 * an import is checked like any other publish, against what the engines here can do.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { ServiceError } from '../errors.ts'
import type { EndpointInput, Place } from './endpoint.ts'

interface Exported {
  readonly workflow: JsonObject
  readonly declaration: JsonObject
  /** All that a call's value replaces, by the name of the input. A declaration can say only one place of each. */
  readonly places: ReadonlyMap<string, readonly Place[]>
}

/** null: the file is no export. Throws invalid_workflow for one that is damaged, or newer than this. */
export function readExport(file: JsonValue): Exported | null {
  if (!isJsonObject(file) || file['atelier_endpoint'] === undefined) return null
  const { atelier_endpoint: format, version, title, description } = file
  if (format !== 1) throw damaged('it was written by a newer version')
  if (!isJsonObject(version) || !isJsonObject(version['workflow'])) throw damaged('it has no workflow')
  const inputs = objectsOf(version['inputs'], 'inputs')
  const places = new Map(inputs.map((input) => [nameOf(input), placesOf(input)]))
  return {
    workflow: version['workflow'],
    declaration: {
      ...(typeof title === 'string' && { title }),
      ...(typeof description === 'string' && { description }),
      only: true,
      inputs: inputs.map(toInputEntry),
      openai: toMapping(inputs),
      outputs: objectsOf(version['outputs'], 'outputs').map(({ name, title: said, kind, node_id: from }) => ({
        ...{ name, title: said, kind, from },
      })),
    },
    places,
  }
}

// What an author may say of an input; the rest is what the classes say.
const SAID = ['name', 'title', 'description', 'required', 'minimum', 'maximum', 'min_length', 'max_length', 'pattern']
const SAID_OF_FILES = ['kind', 'max_bytes', 'max_pixels']

function toInputEntry(input: JsonObject): JsonObject {
  const [{ nodeId, input: at }] = placesOf(input)
  const isFrozen = input['type'] === 'choice' && input['open'] !== true
  const members = [...SAID, ...SAID_OF_FILES, 'default', ...(isFrozen ? ['choices'] : [])]
  const said = members.flatMap((member) => (input[member] == null ? [] : [[member, input[member]]]))
  return { ...Object.fromEntries(said), from: `${nodeId}.${at}` }
}

/** What the author said of image clients, which an export tells with each input. */
function toMapping(inputs: readonly JsonObject[]): JsonObject {
  const map: Record<string, JsonValue> = {}
  const images: JsonValue[] = []
  let convention: JsonValue = null
  for (const input of inputs) {
    for (const { name, index, values, convention: said = null } of objectsOf(input['parameters'] ?? [], 'parameters')) {
      if (typeof name !== 'string') throw damaged('a parameter has no name')
      if (name === 'image' && typeof index === 'number' && index >= 0 && index < MAX_ENTRIES)
        images[index] = nameOf(input)
      else map[name] = values === undefined ? nameOf(input) : { input: nameOf(input), values }
      convention = said ?? convention
    }
  }
  if (images.length > 0) map['image'] = images.filter((name) => name !== undefined)
  return { map, ...(convention !== null && { mask_convention: convention }) }
}

function nameOf({ name }: JsonObject): string {
  if (typeof name !== 'string') throw damaged('an input has no name')
  return name
}

function placesOf(input: JsonObject): [Place, ...Place[]] {
  const places = objectsOf(input['places'], 'places').map(({ node_id: nodeId, input: at }): Place => {
    if (typeof nodeId !== 'string' || typeof at !== 'string') throw damaged('a place has no node or no input')
    return { nodeId, input: at }
  })
  const [first, ...others] = places
  if (first === undefined) throw damaged(`the input ${nameOf(input).slice(0, 64)} sets nothing`)
  return [first, ...others]
}

// As many as a version may have.
const MAX_ENTRIES = 1_000

function objectsOf(list: JsonValue | undefined, member: string): JsonObject[] {
  if (!Array.isArray(list) || list.length > MAX_ENTRIES || !list.every(isJsonObject))
    throw damaged(`${member} must be a list of objects`)
  return list
}

function damaged(why: string): ServiceError {
  return new ServiceError('invalid_workflow', `this export of an endpoint cannot be read: ${why}`, {
    details: { node_errors: {} },
  })
}

/** The inputs with all the places of the export. `known`: every value of the graph that can be an input. */
export function withPlaces(
  inputs: readonly EndpointInput[],
  places: Exported['places'],
  known: readonly EndpointInput[],
): EndpointInput[] {
  const keyOf = ({ nodeId, input }: Place) => JSON.stringify([nodeId, input])
  const values = new Set(known.flatMap((input) => input.places.map(keyOf)))
  return inputs.map((input) => {
    const all = places.get(input.name) ?? input.places
    const wrong = all.find((place) => !values.has(keyOf(place)))
    if (wrong !== undefined)
      throw damaged(`${input.name} sets ${wrong.nodeId}.${wrong.input}, which is no value of its graph`)
    return { ...input, places: all }
  })
}
