/** Tools about what workflows are made of: node classes, and the model files that they name. */
import type { NodeDefinition } from '../../../../engine/graph/node-catalog.ts'
import { isJsonObject, type JsonObject, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { closestWord } from '../../../../lib/text/closest-word.ts'
import { createMatch, json, readPages, type Tool, ToolError, text } from '../tool.ts'

const MAX_FOUND = 50
// A choice of files may have thousands.
const MAX_CHOICES = 60

const findNodeClasses: Tool = {
  name: 'find_node_classes',
  title: 'Find node classes',
  description: `Lists node classes that this service can run, at most ${MAX_FOUND}. Every word of the query must occur in the name, the title or the category of a class. Without a query: the first ones.`,
  properties: { query: { type: 'string', maxLength: 200, description: 'Words, such as "save image".' } },
  isReadOnly: true,
  async run(input, { catalog, signal }) {
    const classes = await catalog(signal)
    const matches = createMatch(input['query'])
    const found = classes.classTypes().flatMap((name) => {
      const { display_name: title, category } = classes.find(name) ?? {}
      return matches(`${name} ${title ?? ''} ${category ?? ''}`) ? [{ class_type: name, title, category }] : []
    })
    return [json({ found: found.length, classes: found.slice(0, MAX_FOUND) })]
  },
}

const getNodeClass: Tool = {
  name: 'get_node_class',
  title: 'Inputs and outputs of a node class',
  description:
    'Gives the inputs of a node class with their types, defaults and choices, and its outputs, as ComfyUI describes them. In a workflow an input is a value, or ["node id", output index] for a link.',
  properties: { class_type: { type: 'string', maxLength: 200, description: 'The exact name of the class.' } },
  required: ['class_type'],
  isReadOnly: true,
  async run(input, { catalog, signal }) {
    const classes = await catalog(signal)
    const name = String(input['class_type'])
    const definition = classes.find(name)
    if (definition !== null) return [text(write(name, definition))]
    const near = closestWord(name, classes.classTypes())
    throw new ToolError(
      `there is no class ${JSON.stringify(name)}; ${near === null ? 'find_node_classes lists them' : `did you mean ${near}?`}`,
    )
  },
}

const findWeights: Tool = {
  name: 'find_weights',
  title: 'Find model files',
  description: `Lists model files (checkpoints, LoRAs, VAEs …) that the engines have and that workflows can name, at most ${MAX_FOUND}. Every word of the query must occur in folder/name.`,
  properties: {
    query: { type: 'string', maxLength: 200, description: 'Words, such as "sdxl".' },
    folder: { type: 'string', maxLength: 255, description: 'Only this folder of models, such as checkpoints.' },
  },
  isReadOnly: true,
  async run({ query, folder }, { api, signal }) {
    const asked = new URLSearchParams({ limit: '1000', ...(folder !== undefined && { folder: String(folder) }) })
    const weights = await readPages(api, '/api/v2/weights', { query: asked, member: 'weights', signal })
    const matches = createMatch(query)
    // Several engines may have one file.
    const files = new Map(
      weights.map(({ folder: where, name, size_bytes }) => [`${where}/${name}`, { folder: where, name, size_bytes }]),
    )
    const found = [...files].filter(([place]) => matches(place)).map(([, file]) => file)
    return [json({ found: found.length, weights: found.slice(0, MAX_FOUND) })]
  },
}

/** Long lists of choices are cut, bounds of numbers keep their digits. */
function write(
  classType: string,
  { input, output, output_name, output_node, display_name, category }: NodeDefinition,
): string {
  const facts = { class_type: classType, display_name, category, input, output, output_name, output_node }
  return stringifyLosslessJson(cutLists(facts) as JsonObject)
}

function cutLists(value: unknown): unknown {
  if (Array.isArray(value)) {
    const kept = value.slice(0, MAX_CHOICES).map(cutLists)
    return value.length > MAX_CHOICES ? [...kept, `… and ${value.length - MAX_CHOICES} more`] : kept
  }
  // A number with all of its digits is an object too.
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, item]) => (item === undefined ? [] : [[name, cutLists(item)]])),
  )
}

export const NODE_TOOLS = [findNodeClasses, getNodeClass, findWeights]
