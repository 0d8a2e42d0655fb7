/** Files that are made to break a publish, each kind in its own way, and what an author could say beside them. The same seed, the same file. */
import { deflateSync } from 'node:zlib'
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import { node } from '../clients/checked-client.ts'
import { card } from '../endpoints/card.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { damage } from './damage.ts'
import { readEditorPairs } from './editor-pairs.ts'
import { savedCard } from './saved-workflow.ts'

export const MEGABYTE = 1_000_000
export const many = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index))

const ODD_TEXTS = [
  ...[
    '__proto__',
    'constructor',
    'toString',
    'version',
    'webhook',
    'wait',
    '',
    ' ',
    '$',
    '$$',
    '$__proto__',
    '$version',
  ],
  ...['рrompt', 'ｐｒｏｍｐｔ', 'pro\u200bmpt', '\u202etpmorp', '\ud800', '\u0000', '𝓹𝓻𝓸𝓶𝓹𝓽', 'x'.repeat(100_000)],
  ...['(a+)+$', '../../etc/passwd', '<script>alert(1)</script>', "'; DROP TABLE endpoint;--", '%2e%2e%2f'],
]
const ODD_VALUES: readonly JsonValue[] = [
  ...[null, true, -1, 1e308, -0, 2 ** 53, 18446744073709551615n, 'NaN', 'Infinity', '1e999', [], {}, [[]]],
  ...[{ toString: 1, valueOf: 1 }, { length: 1e9 }, ['1', -1], ['1', 1e9], ['nobody', 0], ['1', '0'], [1, 0, 0]],
  ...ODD_TEXTS,
]

/** An object with members that literals cannot have. */
const objectOf = (members: readonly (readonly [string, JsonValue])[]): JsonObject => {
  const object: JsonObject = {}
  for (const [name, value] of members)
    Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true })
  return object
}
const nested = (depth: number, open: string, close: string) => open.repeat(depth) + close.repeat(depth)
const widget = (name: string, type = 'STRING') => ({ name, type, widget: { name }, link: null })
/** As the editor saves it, with a node that shows the text of the first one. */
const saved = (
  nodes: JsonValue[],
  { links = [], ...more }: { readonly links?: JsonValue[] } & JsonObject = {},
): JsonObject => ({
  nodes: [
    ...nodes,
    { id: 900, type: 'PreviewAny', mode: 0, inputs: [{ name: 'source', type: '*', link: 0 }], outputs: [] },
  ],
  links: [[0, 1, 0, 900, 0, '*'], ...links],
  ...{ version: 0.4, ...more },
})
const text = (id: number, more: JsonObject = {}): JsonObject => ({
  ...{ id, type: 'PrimitiveString', mode: 0, properties: {}, inputs: [widget('value')] },
  ...{ outputs: [{ name: 'STRING', type: 'STRING', links: [] }], widgets_values: ['a'], ...more },
})
const subgraph = (id: JsonValue, inner: JsonValue, more: JsonObject = {}): JsonObject => ({
  ...{ id, name: 'sub', inputs: [], outputs: [], links: [], nodes: [{ id: 1, type: inner, mode: 0 }], ...more },
})

function chunk(type: string, data: Buffer, length = data.length): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(length % 2 ** 32)
  head.write(type, 4, 'latin1')
  return Buffer.concat([head, data, Buffer.alloc(4)])
}
const PNG = Buffer.from('89504e470d0a1a0a', 'hex')
const picture = (...chunks: readonly Buffer[]) =>
  JSON.stringify(
    `data:image/png;base64,${Buffer.concat([PNG, chunk('IHDR', Buffer.alloc(13)), ...chunks]).toString('base64')}`,
  )

const BOMB = deflateSync(Buffer.alloc(80 * MEGABYTE, ' '), { level: 1 })

type Make = (random: SeededRandom) => JsonValue

/** Files as values. */
export const SHAPES: Readonly<Record<string, Make>> = {
  'a graph with an odd value in it': ({ pick }) =>
    card('a', { [pick(['text', 'font_size', 'images', 'color'])]: pick(ODD_VALUES) }) as JsonObject,
  'a graph with odd names': ({ pick, between }) =>
    objectOf(
      many(between(1, 20), (index) => [
        `${pick(ODD_TEXTS)}${index % 3}`,
        node('SaveImage', { images: [pick(ODD_TEXTS), 0] }) as JsonObject,
      ]),
    ),
  'inputs of odd names': ({ pick }) => ({
    ...(card('a') as JsonObject),
    '9': node(
      pick(['TextOverlay', 'Nobody', '__proto__']),
      objectOf(ODD_TEXTS.map((name) => [name, pick(ODD_VALUES)])),
    ) as JsonObject,
  }),
  'titles that look alike': ({ pick }) =>
    saved(
      many(200, (id) =>
        text(id + 1, {
          title: pick(['$prompt', '$рrompt', '$ｐｒｏｍｐｔ', '$Prompt', '$prompt ', ...ODD_TEXTS.slice(0, 18)]),
        }),
      ),
    ),
  'two inputs of one name': ({ between }) =>
    saved([{ ...text(1), inputs: many(between(2, 900), () => widget('value')) }, text(1), text(1)]),
  'App mode of any shape': ({ pick, next }) => {
    const entry = () =>
      pick([pick(ODD_VALUES), [pick(ODD_VALUES), pick(ODD_VALUES)], ['1', 'value', pick(ODD_VALUES)], [10, 'value']])
    const list = () => (next() < 0.8 ? many(50, entry) : pick(ODD_VALUES))
    const linearData = next() < 0.9 ? { inputs: list(), outputs: list(), [pick(ODD_TEXTS)]: 1 } : pick(ODD_VALUES)
    return {
      ...savedCard('app'),
      extra: next() < 0.9 ? { linearData, linearMode: pick(ODD_VALUES) } : pick(ODD_VALUES),
    }
  },
  'a megabyte of links': ({ between }) =>
    saved([text(1), text(2)], { links: many(between(20_000, 45_000), (id) => [(id % 7) + 1, 1, id, 2, -id, '*']) }),
  'a megabyte of values': ({ pick }) =>
    saved([text(1, { widgets_values: many(200_000, (index) => (index % 2 ? null : pick([1, true]))) })]),
  'a text of a megabyte': ({ pick }) => card(pick(['x', '"', '\\', '語', '\u0001']).repeat(MEGABYTE / 6)) as JsonObject,
  'thousands of levels of subgraphs': ({ between }) => {
    const depth = between(50, 1_900)
    return saved([{ id: 1, type: 's0' }], {
      definitions: { subgraphs: many(depth, (level) => subgraph(`s${level}`, `s${level + 1}`)) },
    })
  },
  'thousands of definitions': ({ between }) =>
    saved([text(1)], {
      definitions: {
        subgraphs: many(between(1_900, 5_000), (index) => subgraph(`s${index % 1_950}`, 'PrimitiveString')),
      },
    }),
  'subgraphs that hold themselves': ({ pick }) =>
    saved([{ id: 1, type: 'a' }], {
      definitions: {
        subgraphs: [subgraph('a', pick(['a', 'b'])), subgraph(pick(['b', 'a']), 'a', { inputs: [widget('x')] })],
      },
    }),
  'ids that occur twice': ({ pick }) => {
    const ids = many(100, () => pick<JsonValue>([1, '1', 1.0, -1, 0, 1e308, '01', null, [], '__proto__', '1:1']))
    return saved(
      ids.map((id) => ({ ...text(1), id })),
      { definitions: { subgraphs: ids.map((id) => subgraph(id, '1')) } },
    )
  },
  'an export that lies': ({ pick }) => ({
    atelier_endpoint: pick<JsonValue>([1, 1, 1, 2, '1']),
    title: pick(ODD_VALUES),
    version: {
      workflow: pick<JsonValue>([card('a') as JsonObject, pick(ODD_VALUES)]),
      inputs: [
        {
          name: pick(ODD_TEXTS),
          type: pick(ODD_VALUES),
          default: pick(ODD_VALUES),
          places: [{ node_id: '2', input: pick(['text', ...ODD_TEXTS]) }],
          parameters: pick<JsonValue>([[], [{ name: '__proto__' }], pick(ODD_VALUES)]),
        },
      ],
      outputs: [
        { name: pick(ODD_TEXTS), kind: pick(ODD_VALUES), node_id: pick<JsonValue>(['3', '2', pick(ODD_VALUES)]) },
      ],
    },
  }),
  'partner nodes without a key': ({ pick }) => ({
    '1': node(pick(['FluxProUltraImageNode', 'OpenAIGPTImage1', 'KlingTextToVideoNode']), {
      prompt: 'a',
      seed: 1,
    }) as JsonObject,
    '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'x' }) as JsonObject,
  }),
  'a file that was damaged': ({ pick, next }) =>
    damage(pick<JsonValue>([savedCard('x'), card('x') as JsonObject, pick(PAIRS).ui]), next),
}
const PAIRS = readEditorPairs()

/** Files as their text: what no value of JavaScript can say. */
export const TEXTS: Readonly<Record<string, (random: SeededRandom) => string>> = {
  'nested deep': ({ pick, between }) =>
    `{"1":{"class_type":"TextOverlay","inputs":{"text":${nested(
      between(90, 200_000),
      ...pick<[string, string]>([
        ['[', ']'],
        ['{"a":', '}'],
        ['[{"a":', '}]'],
      ]),
    )}}}}`.replaceAll(':}', ':1}'),
  'numbers that are none': ({ pick }) =>
    `{"1":{"class_type":"EmptyImage","inputs":{"width":${pick(['NaN', 'Infinity', '-Infinity', '1e999', '-0', '1'.repeat(400_000), '0x10', '1e-400', '00'])},"height":8,"batch_size":1,"color":0}},"2":{"class_type":"SaveImage","inputs":{"images":["1",0],"filename_prefix":"x"}}}`,
  'members that occur twice': ({ pick }) =>
    `{"1":{"class_type":"EmptyImage","class_type":${pick(['"SaveImage"', '7'])},"inputs":{},"__proto__":{"inputs":{}}},"1":{"class_type":"PreviewAny","inputs":{"source":"a"}}}`,
  'a picture with chunks that lie': ({ pick, between }) => {
    const said = JSON.stringify(pick<JsonValue>([savedCard('png') as JsonObject, 7, card('png') as JsonObject]))
    const keyword = pick(['workflow', 'prompt', 'Workflow', '__proto__', 'workflow\0'])
    const plain = Buffer.from(`${keyword}\0${said}`)
    const bomb = Buffer.concat([Buffer.from(`${keyword}\0\0`), BOMB])
    return picture(
      ...many(between(1, 4), () =>
        pick([
          () => chunk('tEXt', plain),
          () => chunk('tEXt', plain, pick([0, plain.length + 1_000, 2 ** 31, 2 ** 32 - 1, 3])),
          () => chunk('zTXt', bomb),
          () => chunk('iTXt', Buffer.concat([Buffer.from(`${keyword}\0\u0001\0\0\0`), deflateSync(said)])),
          () => chunk('iTXt', Buffer.from(`${keyword}\0\u0001\u0009`)),
          () => chunk('tEXt', Buffer.from('workflow')),
        ])(),
      ),
      ...many(pick([0, 20_000]), () => chunk('tEXt', Buffer.alloc(0))),
    )
  },
  'no file': ({ pick }) =>
    pick([
      '""',
      '"data:,"',
      '"data:;base64,"',
      '"data:image/png;base64,####"',
      'null',
      '[]',
      '7',
      '{}',
      '{"nodes":{}}',
      '{"output":{}}',
    ]),
}

export const DECLARATIONS: readonly JsonValue[] = [
  ...[null, {}, { inputs: { __proto__x: null } }, { only: true, inputs: [] }, { inputs: { prompt: '2.text' } }],
  ...[
    {
      inputs: [
        { name: 'a', from: '2.text' },
        { name: 'a', from: '2.color' },
      ],
    },
    { inputs: { version: '2.text' } },
  ],
  ...[
    { inputs: { a: { from: '2.text', pattern: '(a+)+$' } } },
    { title: '\u202eevil' },
    { outputs: { a: { from: 'toString' } } },
  ],
  ...[
    { inputs: objectOf([['__proto__', '2.text']]) },
    7,
    [],
    { inputs: 7 },
    { inputs: { a: { from: '2.font_size', maximum: '1e999' } } },
  ],
]
