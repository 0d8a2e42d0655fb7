import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  beginDraft,
  type Draft,
  draftOfText,
  fillDraft,
  readDraft,
} from '../../../console/src/form/schema/schema-draft.ts'
import { bytesOf, type SchemaNode, toSchemaTree, writeMedia } from '../../../console/src/form/schema/schema-tree.ts'
import { type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'

const treeOf = (schema: JsonValue, root: JsonValue = schema) => toSchemaTree(schema, root)

/** The draft in which the named part holds this text. */
function typing(node: SchemaNode, draft: Draft, path: readonly (string | number)[], text: string): Draft {
  const [step, ...rest] = path
  if (step === undefined) return { kind: 'leaf', text }
  if (node.kind === 'group' && draft.kind === 'group') {
    const index = node.parts.findIndex(({ name }) => name === step)
    return { ...draft, parts: draft.parts.with(index, typing(node.parts[index], draft.parts[index], rest, text)) }
  }
  if (node.kind === 'list' && draft.kind === 'list')
    return { ...draft, items: draft.items.with(Number(step), typing(node.item, draft.items[Number(step)], rest, text)) }
  throw new Error(`no part ${step}`)
}

const SCHEMA: JsonValue = {
  type: 'object',
  required: ['text', 'messages'],
  example: { text: 'Hello', messages: [{ role: 'user', content: 'Hi' }] },
  properties: {
    width: { type: 'integer', minimum: 1, maximum: 8192, default: 768 },
    text: { type: 'string', maxLength: 10 },
    align: { type: 'string', enum: ['left', 'right'], default: 'left' },
    level: { enum: [1, 2, null] },
    messages: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['role', 'content'],
        properties: {
          role: { enum: ['user', 'assistant'] },
          content: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'object' } }] },
        },
      },
    },
    options: {
      type: 'object',
      required: ['mode'],
      properties: { mode: { type: 'string' }, fast: { type: 'boolean' } },
    },
    extra: { type: 'object', additionalProperties: true },
  },
}

test('a schema becomes fields, groups, lists and shapes; what is needed stands first, with the example in it', () => {
  const tree = treeOf(SCHEMA)
  assert.deepEqual(
    tree.parts.map((part) => `${part.name} ${part.kind === 'leaf' ? part.field.kind : part.kind}`),
    ['text text', 'messages list', 'width integer', 'align choice', 'level choice', 'options group', 'extra json'],
  )
  assert.deepEqual(readDraft(tree, beginDraft(tree)), {
    text: '{"text":"Hello","messages":[{"role":"user","content":"Hi"}]}',
    problems: new Map(),
  })
})

test('what was typed is sent by its type; what equals the default, or is left empty, is not', () => {
  const tree = treeOf(SCHEMA)
  let draft = beginDraft(tree)
  for (const [path, text] of [
    [['width'], '768'],
    [['align'], 'right'],
    [['level'], '2'],
    [['options', 'mode'], 'a "b"'],
    [['messages', 0, 'role'], 'assistant'],
    [['extra'], '{"n":18446744073709551615}'],
  ] as const)
    draft = typing(tree, draft, path, text)
  assert.equal(
    readDraft(tree, draft).text,
    '{"text":"Hello","messages":[{"role":"assistant","content":"Hi"}],"align":"right","level":2,"options":{"mode":"a \\"b\\""},"extra":{"n":18446744073709551615}}',
  )
})

test('each fault is told at its own part', () => {
  const tree = treeOf(SCHEMA)
  let draft = beginDraft(tree)
  for (const [path, text] of [
    [['text'], 'more than ten characters'],
    [['width'], '9000'],
    [['level'], '7'],
    [['options', 'fast'], 'true'],
    [['extra'], '{'],
  ] as const)
    draft = typing(tree, draft, path, text)
  assert.deepEqual(Object.fromEntries(readDraft(tree, draft).problems), {
    '/0': 'at most 10 characters',
    '/2': 'at most 8192',
    '/4': 'not one of the choices',
    '/5/0': 'needed',
    '/6': 'not JSON',
  })
})

test('an input written as JSON comes back from the form as it was, names that the schema does not have too', () => {
  const tree = treeOf(SCHEMA)
  const written =
    '{"text":"x","messages":[{"role":"user","content":[{"a":1}]},{"role":"user","content":"b"}],"width":5,"other":[1.0]}'
  const draft = draftOfText(tree, written)
  assert.ok(draft !== null)
  assert.deepEqual(readDraft(tree, draft), { text: written, problems: new Map() })
  assert.equal(draftOfText(tree, '[]'), null)
})

test('pictures, videos and sounds are known by their names and descriptions, and written as the field wants them', () => {
  const mediaOf = (name: string, about: string, more: object = {}) => {
    const [part] = treeOf({ properties: { [name]: { type: 'string', description: about, ...more } } }).parts
    return part.kind === 'leaf' && part.media !== null ? `${part.media.kind}${part.media.isBare ? ' bare' : ''}` : null
  }
  assert.equal(mediaOf('image', 'A picture as a data URI with base64.'), 'image')
  assert.equal(mediaOf('input_image_2', 'A further picture, as base64.'), 'image bare')
  assert.equal(mediaOf('startVideo', ''), 'video')
  assert.equal(mediaOf('data', '', { contentMediaType: 'audio/wav', contentEncoding: 'base64' }), 'audio bare')
  assert.equal(mediaOf('image', 'An address.'), null)
  assert.equal(mediaOf('image_size', ''), null)
  assert.equal(mediaOf('prompt', 'What the image shows.'), null)
  assert.equal(writeMedia('data:image/png;base64,AAAA', { kind: 'image', isBare: true }), 'AAAA')
  assert.deepEqual(
    [bytesOf('data:image/png;base64,AAAA'), bytesOf('https://a.example/x.png'), bytesOf('')],
    [3, null, null],
  )
})

test('references that go in circles end, and so do schemas that are too deep or too wide', () => {
  const wide = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`p${index}`, { $ref: '#/node' }]))
  const root: JsonValue = {
    node: { type: 'object', properties: wide },
    loop: { $ref: '#/loop' },
    both: { allOf: [{ $ref: '#/both' }, { properties: { a: { type: 'string' } } }] },
  }
  const count = (node: SchemaNode): number =>
    node.kind === 'group' ? node.parts.reduce((sum, part) => sum + count(part), 1) : 1
  const tree = treeOf({ properties: { a: { $ref: '#/node' }, b: { $ref: '#/loop' }, c: { $ref: '#/both' } } }, root)
  assert.ok(count(tree) < 3000)
  assert.equal(readDraft(tree, beginDraft(tree)).text, '{}')
})

test('whatever stands in a schema, the form is drawn and what it reads is JSON', () => {
  const word = fc.constantFrom('type', 'properties', 'items', 'enum', 'required', 'oneOf', 'anyOf', 'allOf', 'default')
  const more = fc.constantFrom('minimum', 'maxItems', 'minLength', 'const', '$ref', 'description', 'example', 'format')
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom('string', 'integer', 'array', 'object', 'null', '#/properties/a', '', '__proto__'),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.oneof(word, more, fc.constantFrom('a', 'image', '__proto__')), tie('value'), { maxKeys: 5 }),
    ),
  }))
  fc.assert(
    fc.property(value, value, (schema, input) => {
      const document = parseLosslessJson(JSON.stringify({ properties: { a: schema, b: schema } }))
      const tree = toSchemaTree(document, document)
      for (const draft of [beginDraft(tree), fillDraft(tree, parseLosslessJson(JSON.stringify({ a: input })))])
        JSON.parse(readDraft(tree, draft).text)
    }),
  )
})
