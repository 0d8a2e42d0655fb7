/** What an endpoint takes, as JSON Schema. Pure. */
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import type { EndpointInput, FileKind } from './endpoint.ts'

/** Of the object `inputs`. */
export function toInputSchema(inputs: readonly EndpointInput[]): JsonObject {
  const required = inputs.filter(({ isRequired }) => isRequired).map(({ name }) => name)
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(inputs.map((input) => [input.name, toPropertySchema(input)])),
    ...(required.length > 0 && { required }),
  }
}

function toPropertySchema(input: EndpointInput): JsonObject {
  const { title, description, example } = input
  const about = { title, ...(description !== '' && { description }), examples: [example] }
  switch (input.type) {
    case 'text': {
      const { minLength, maxLength, pattern } = input
      const bounds = {
        ...(minLength > 0 && { minLength }),
        maxLength,
        ...(pattern !== null && { pattern: `^(?:${pattern})$` }),
      }
      return { type: 'string', ...about, ...bounds, ...(input.default !== null && { default: input.default }) }
    }
    case 'integer':
    case 'number': {
      const { type, minimum, maximum } = input
      return { type, ...about, ...toBounds(minimum, maximum), ...toDefault(input.default) }
    }
    case 'seed': {
      const told = `${description === '' ? '' : `${description} `}Drawn at random when it is left out; the answer says which it was.`
      return { type: 'integer', ...about, description: told, ...toBounds(input.minimum, input.maximum) }
    }
    case 'boolean':
      return { type: 'boolean', ...about, default: input.default }
    case 'choice':
      return input.isOpen
        ? { type: 'string', ...about, examples: input.choices.slice(0, 20), ...toDefault(input.default) }
        : { ...about, enum: [...input.choices], ...toDefault(input.default) }
    case 'file':
      return {
        type: 'string',
        ...about,
        description: `${description === '' ? '' : `${description} `}${FILE_WORDS[input.kind]}: the id of an asset, an https address, or a data: address.`,
        contentMediaType: MEDIA_TYPES[input.kind],
      }
  }
}

const FILE_WORDS: Readonly<Record<FileKind, string>> = {
  image: 'A picture',
  mask: 'A mask',
  video: 'A video',
  audio: 'A sound',
  model3d: 'A 3D model',
  file: 'A file',
}

const MEDIA_TYPES: Readonly<Record<FileKind, string>> = {
  image: 'image/*',
  mask: 'image/*',
  video: 'video/*',
  audio: 'audio/*',
  model3d: 'model/*',
  file: 'application/octet-stream',
}

function toBounds(minimum: JsonValue, maximum: JsonValue): JsonObject {
  return { ...(minimum !== null && { minimum }), ...(maximum !== null && { maximum }) }
}

function toDefault(value: JsonValue): JsonObject {
  return value === null ? {} : { default: value }
}
