/**
 * What a model takes when it is called for a conversation in OpenAI's form. Providers read far more of a request than is named here;
 * what is named is what decides whether it can be sent and what it may cost at most.
 */
import { isRecord, type JsonRecord } from './model.ts'

const COUNT = { type: 'integer', minimum: 1, nullable: true }
const FLAG = { type: 'boolean', nullable: true }

// A tier that answers sooner costs a multiple of the price by tokens, which says nothing of it.
const TIERS = { type: 'string', enum: ['auto', 'default', 'flex'], nullable: true }

const SCHEMA: JsonRecord = {
  type: 'object',
  description: 'A conversation, in the form of OpenAI.',
  required: ['messages'],
  properties: {
    model: { type: 'string', nullable: true },
    messages: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['role'],
        properties: {
          role: { type: 'string', enum: ['developer', 'system', 'user', 'assistant', 'tool', 'function'] },
          content: {
            nullable: true,
            anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'object', additionalProperties: true } }],
          },
        },
        additionalProperties: true,
      },
    },
    // A second answer would be a second price.
    n: { type: 'integer', minimum: 1, maximum: 1, nullable: true },
    max_tokens: COUNT,
    max_completion_tokens: COUNT,
    stream: FLAG,
    stream_options: {
      type: 'object',
      nullable: true,
      properties: { include_usage: FLAG },
      additionalProperties: true,
    },
  },
}

const EXAMPLE: JsonRecord = { messages: [{ role: 'user', content: 'Three names for a bakery' }] }

interface OwnParts {
  readonly input: JsonRecord | null
  readonly price: JsonRecord | null
  readonly adapter: JsonRecord | null
}

/** `hasNames`: the caller's `model` is one of many that the provider has. */
export function toChatDocument(
  file: JsonRecord,
  { input, price, adapter }: OwnParts,
  { hasNames }: { readonly hasNames: boolean },
): JsonRecord {
  const { chat: _chat, images: _images, alternate: _alternate, hosting: _hosting, ...rest } = file
  const given = isRecord(rest['input']) ? rest['input'] : {}
  const { model_field: _field, ...about } = given
  const named: JsonRecord = hasNames ? {} : { model_field: 'model' }
  const asked = price ?? rest['price']
  const schema = isRecord(asked) && asked['parts'] !== undefined ? withTiers(SCHEMA) : SCHEMA
  return {
    ...rest,
    input: input ?? { ...about, ...named, schema, example: EXAMPLE },
    output: { modalities: ['text'], media_type: 'application/json' },
    returns: 'direct',
    ...(price !== null && { price }),
    adapter: { ...(isRecord(rest['adapter']) ? rest['adapter'] : {}), ...adapter },
  }
}

function withTiers({ properties, ...schema }: JsonRecord): JsonRecord {
  return { ...schema, properties: { ...(isRecord(properties) ? properties : {}), service_tier: TIERS } }
}
