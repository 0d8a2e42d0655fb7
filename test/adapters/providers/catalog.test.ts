import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { type CatalogFile, readCatalogFiles } from '../../../src/adapters/providers/catalog/catalog-files.ts'
import { readCatalog } from '../../../src/adapters/providers/catalog/read-catalog.ts'
import { checkSandboxModel } from '../../../src/adapters/providers/sandbox/sandbox-provider.ts'
import { createCompileSchema } from '../../../src/adapters/schemas/ajv-input.ts'

const DEPS = { compileSchema: createCompileSchema(), builtIn: { sandbox: checkSandboxModel, local: () => [] } }
const shipped = await readCatalogFiles(path.join(import.meta.dirname, '../../../models'))

/** Providers that have a card, each with at least two models. */
const CARDS = [
  'bfl',
  'byteplus',
  'kling',
  'vertexai',
  'veo',
  'openai',
  'luma',
  'luma_2',
  'runway',
  'minimax',
  'stability',
]
const MORE_CARDS = [
  'ideogram',
  'recraft',
  'fal',
  'replicate',
  'elevenlabs',
  'xai',
  'wan',
  'wavespeed',
  'runware',
  'higgsfield',
]

test('the shipped catalogue has no problem: every schema compiles and takes its own example', () => {
  const { problems, models, providers } = readCatalog(shipped, DEPS)
  assert.deepEqual(problems, [])
  for (const provider of [...CARDS, ...MORE_CARDS]) {
    const own = models.filter((model) => model.provider === provider && model.state === 'released')
    assert.ok(own.length >= 2, provider)
    assert.ok(
      own.every(({ input }) => input.schema !== null),
      provider,
    )
    assert.ok(
      providers.some((rules) => rules.provider === provider),
      provider,
    )
  }
})

test('which results are hosted, and for how long, is as the contract says', () => {
  const { models } = readCatalog(shipped, { ...DEPS, isChecked: () => true })
  const hours = (provider: string) =>
    [
      ...new Set(
        models
          .filter((model) => model.provider === provider)
          .map(({ hosting }) => (hosting?.lifetimeMs ?? 0) / 3_600_000),
      ),
    ].sort()
  assert.deepEqual(hours('bfl'), [24])
  assert.deepEqual(hours('minimax'), [12])
  assert.deepEqual(hours('xai'), [24])
  assert.deepEqual(hours('veo'), [24])
  for (const provider of ['kling', 'luma', 'luma_2', 'ideogram', 'recraft', 'runway', 'wan'])
    assert.deepEqual(hours(provider), [0], provider)
  const byteplus = models.filter(({ provider, state }) => provider === 'byteplus' && state === 'released')
  for (const { id, hosting } of byteplus) assert.equal(hosting !== null, id.includes('seedance'), id)
})

// Data files as a careless hand sees them: everything can be read and written everywhere.
type Editable = Record<string, never> & { [name: string]: Editable }

function edited(file: string, change: (document: Editable) => void): CatalogFile[] {
  return shipped.map((entry) => {
    if (entry.file !== file) return entry
    const document = JSON.parse(entry.text)
    change(document)
    return { file, text: JSON.stringify(document) }
  })
}

const MODEL = 'bfl/flux-2-pro.json'

const MISTAKES: [string, CatalogFile[], string, RegExp][] = [
  ['a file that is no JSON', [{ file: 'x/y.json', text: '{' }], 'x/y.json', /no JSON: .*position 1/],
  [
    'a mistyped field',
    edited(MODEL, (d) => Object.assign(d, { retruns: 'poll' })),
    MODEL,
    /^retruns is no known field; did you mean returns\?$/,
  ],
  [
    'a mistyped rule, beside a mistyped field,',
    edited(MODEL, (d) => {
      Object.assign(d, { retruns: 'poll' })
      Object.assign(d['adapter']['operations'][0]['task'], { sucess: ['x'] })
    }),
    MODEL,
    /^adapter\.operations\[0\]\.task has no field sucess; did you mean success\?$/,
  ],
  [
    'a schema that is none, without an example,',
    edited(MODEL, (d) => Object.assign(d['input'], { schema: { type: 'objct' }, example: null })),
    MODEL,
    /^input\.schema/,
  ],
  [
    'a model without a provider',
    [
      {
        file: 'x/y.json',
        text: shipped.find(({ file }) => file === MODEL)?.text.replace('bfl/flux-2-pro', 'x/y') ?? '',
      },
    ],
    'x/y.json',
    /x\/provider\.json/,
  ],
  [
    'a file under another name than its model',
    edited(MODEL, (d) => Object.assign(d, { id: 'bfl/other' })),
    MODEL,
    /bfl\/other\.json/,
  ],
  [
    'a rule that does not exist',
    edited(MODEL, (d) => Object.assign(d['adapter'], { asset: [] })),
    MODEL,
    /adapter.*asset/,
  ],
  [
    'a pattern that cannot be read',
    edited(MODEL, (d) => Object.assign(d['adapter'], { outcomes: [{ is: 'policy', match: '(' }] })),
    MODEL,
    /adapter.*regular expression/i,
  ],
  [
    'a path that cannot be read',
    edited(MODEL, (d) => Object.assign(d['adapter'], { assets: ['a..b'] })),
    MODEL,
    /not a path/,
  ],
  [
    'a name without a value',
    edited(MODEL, (d) => Object.assign(d['adapter']['operations'][0], { path: '/{voice}' })),
    MODEL,
    /\{voice\}/,
  ],
  [
    'a model that says it is direct and is polled',
    edited(MODEL, (d) => Object.assign(d, { returns: 'direct' })),
    MODEL,
    /returns must be poll/,
  ],
  [
    'a hosted leaf that is no asset',
    edited(MODEL, (d) => Object.assign(d['hosting'], { leaves: ['a.b'] })),
    MODEL,
    /hosting\.leaves/,
  ],
  [
    'an example that its schema refuses',
    edited(MODEL, (d) => Object.assign(d['input'], { example: { width: 1 } })),
    MODEL,
    /example\.(prompt|width)/,
  ],
  [
    'a schema that is none',
    edited(MODEL, (d) => Object.assign(d['input']['schema'], { properties: { prompt: { type: 'sentence' } } })),
    MODEL,
    /input\.schema/,
  ],
  [
    'a form for pictures with a field that the input has not',
    edited(MODEL, (d) => Object.assign(d['images'], { n: 'num_images' })),
    MODEL,
    /^images names num_images, which is no field of the input$/,
  ],
  [
    'a form for conversations that cannot be',
    edited(MODEL, (d) => Object.assign(d, { chat: { adapter: { operations: [] } } })),
    MODEL,
    /^chat: adapter/,
  ],
  [
    'a successor that does not exist',
    edited(MODEL, (d) => Object.assign(d, { state: 'retired', successor: 'bfl/none' })),
    MODEL,
    /successor bfl\/none/,
  ],
  [
    'a provider with an unknown meaning',
    edited('bfl/provider.json', (d) => Object.assign(d['outcomes'][0], { is: 'annoyed' })),
    'bfl/provider.json',
    /outcomes\[0\]\.is must be one of policy, invalid/,
  ],
  [
    'a sandbox behaviour that does not exist',
    edited('sandbox/echo.json', (d) => Object.assign(d['adapter'], { behaviour: 'dance' })),
    'sandbox/echo.json',
    /behaviour/,
  ],
]

for (const [name, files, file, words] of MISTAKES) {
  test(`${name} is named with its file`, () => {
    const { problems } = readCatalog(files, { ...DEPS, isChecked: (other) => other !== file })
    const own = problems.filter((problem) => problem.file === file)
    assert.ok(
      own.some(({ problem }) => words.test(problem)),
      JSON.stringify(problems.slice(0, 5)),
    )
  })
}

test('a name that stands twice is named in both files', () => {
  const copy = { file: 'bfl/copy.json', text: shipped.find(({ file }) => file === MODEL)?.text ?? '' }
  const { problems } = readCatalog([...shipped, copy], { ...DEPS, isChecked: () => true })
  assert.deepEqual(
    problems
      .filter(({ problem }) => /several files/.test(problem))
      .map(({ file }) => file)
      .sort(),
    ['bfl/copy.json', MODEL],
  )
})
