/**
 * What a release promised is kept: no change of `spec/` breaks a caller of the release before, unless the document has a new major
 * version. What was promised is in `test/fixtures/released`, written at each release by `scripts/keep-release.ts`.
 */
import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { type Contract, findBreaks } from '../support/contracts/compare-contracts.ts'
import { project, readJson } from './sources.ts'

const RELEASED = 'test/fixtures/released/spec'

/** Changes that break nobody, though they look like it: what `findBreaks` says, and why it is none. */
const HARMLESS: readonly (readonly [change: string, why: string])[] = [
  ['GET /api/assets answers 200 now', 'it answered nothing but that it is not offered'],
  ['GET /api/tags answers 200 now', 'it answered nothing but that it is not offered'],
]

const majorOf = ({ info }: Contract) => Number.parseInt(info.version, 10)

const released = globSync('*.json', { cwd: path.join(project, RELEASED) })

test('the contracts of the last release are kept', () => {
  assert.ok(released.includes('jobs-v2.openapi.json'), 'there is a release to compare with')
})

for (const name of released) {
  test(`${name} breaks no caller of the last release`, () => {
    const [before, after] = [`${RELEASED}/${name}`, `spec/${name}`].map((file) => readJson(file) as Contract)
    if (majorOf(after) > majorOf(before)) return
    const harmless = HARMLESS.map(([change]) => change)
    const breaks = [...new Set(findBreaks(before, after))].filter((each) => !harmless.includes(each))
    assert.deepEqual(breaks, [], `keep the old form beside the new one, or raise the major version in spec/${name}`)
  })
}

const STRING = { type: 'string' }
const THING = {
  type: 'object',
  required: ['id'],
  properties: { id: STRING, note: { ...STRING, maxLength: 9 }, state: { enum: ['open', 'done'] } },
}

function contract(change: (operation: Record<string, unknown>, schemas: Record<string, object>) => void): Contract {
  const json = (schema: object) => ({ content: { 'application/json': { schema } } })
  const operation: Record<string, unknown> = {
    operationId: 'makeThing',
    parameters: [{ name: 'limit', in: 'query', schema: { type: 'integer', maximum: 10 } }],
    requestBody: { required: true, ...json({ $ref: '#/components/schemas/Asked' }) },
    responses: { 200: json({ $ref: '#/components/schemas/Told' }) },
  }
  const schemas: Record<string, object> = { Asked: THING, Told: THING }
  change(operation, schemas)
  return {
    info: { version: '1' },
    security: [{ bearer: [] }],
    paths: { '/things': { post: operation } },
    components: { schemas },
  } as unknown as Contract
}

const limit = (more: object) => [{ name: 'limit', in: 'query', schema: { type: 'integer', maximum: 10 }, ...more }]
const member = (name: string, schema: object) => ({ ...THING, properties: { ...THING.properties, [name]: schema } })

const BREAKING: readonly (readonly [string, RegExp, Parameters<typeof contract>[0]])[] = [
  ['a parameter that is gone', /limit is no longer taken/, (now) => (now['parameters'] = [])],
  ['a parameter that must be given', /limit must be given/, (now) => (now['parameters'] = limit({ required: true }))],
  [
    'a smaller maximum',
    /tighter maximum/,
    (now) => (now['parameters'] = limit({ schema: { type: 'integer', maximum: 9 } })),
  ],
  [
    'a body in another type',
    /json is no longer taken/,
    (now) => (now['requestBody'] = { content: { 'text/csv': {} } }),
  ],
  [
    'a member that must be given',
    /note must be given/,
    (_, all) => (all['Asked'] = { ...THING, required: ['id', 'note'] }),
  ],
  [
    'a member that is refused',
    /takes no other members/,
    (_, all) => (all['Asked'] = { ...THING, additionalProperties: false }),
  ],
  [
    'a member that is no longer taken',
    /state is gone/,
    (_, all) => (all['Asked'] = { ...THING, properties: { id: STRING, note: STRING } }),
  ],
  [
    'a new pattern',
    /another pattern/,
    (_, all) => (all['Asked'] = member('note', { ...STRING, maxLength: 9, pattern: '^x' })),
  ],
  [
    'a value that is no longer taken',
    /may no longer be "done"/,
    (_, all) => (all['Asked'] = member('state', { enum: ['open'] })),
  ],
  ['a member that may be missing', /id may now be missing/, (_, all) => (all['Told'] = { ...THING, required: [] })],
  [
    'a member that may be null',
    /id may now be null/,
    (_, all) => (all['Told'] = member('id', { type: ['string', 'null'] })),
  ],
  [
    'a value that nobody knew',
    /may now be "lost"/,
    (_, all) => (all['Told'] = member('state', { enum: ['open', 'done', 'lost'] })),
  ],
  ['an answer of another status', /answers 202 now/, (now) => (now['responses'] = { 202: {} })],
  ['another name', /was called makeThing/, (now) => (now['operationId'] = 'createThing')],
  ['other credentials', /bearer is no longer enough/, (now) => (now['security'] = [{ apiKey: [] }])],
]

for (const [what, told, change] of BREAKING) {
  test(`${what} is told as breaking`, () => {
    const breaks = findBreaks(
      contract(() => {}),
      contract(change),
    )
    assert.equal(breaks.length, 1, breaks.join('\n'))
    assert.match(breaks[0] ?? '', told)
  })
}

test('what only adds, and what is taken more freely, breaks nobody', () => {
  const after = contract((now, all) => {
    now['parameters'] = [...limit({ schema: { type: 'number', maximum: 20 } }), { name: 'more', in: 'query' }]
    now['security'] = [{ bearer: [] }, {}]
    all['Asked'] = { ...member('note', { type: ['string', 'null'], maxLength: 20 }), required: [] }
    all['Told'] = { ...member('new', STRING), required: ['id', 'note'] }
  })
  assert.deepEqual(
    findBreaks(
      contract(() => {}),
      after,
    ),
    [],
  )
  assert.match(findBreaks(after, { ...after, paths: {} })[0] ?? '', /is gone$/)
})
