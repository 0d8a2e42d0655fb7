/**
 * The examples of the specification: each fits its document, and every sample that the reference pages make of them, in each language, is told
 * the same by a service. `node test/examples/record.ts` writes the answers.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { readExamples, withExamples } from '../../lib/openapi/examples.ts'
import { type Document, type Operation, readOperations } from '../../lib/openapi/operations.ts'
import { toSamples } from '../../src/surfaces/docs/samples.ts'
import { readJson } from '../architecture/sources.ts'
import { type Language, openPython, openShell, openTypescript } from './languages.ts'
import { findDifference } from './normal-form.ts'
import { fill, keep, type Scenario, type Step, type World } from './scenario.ts'
import { DOORS, SCENARIOS } from './scenarios/index.ts'

const PYTHON = process.env['ATELIER_TEST_PYTHON']

const LANGUAGES: readonly (readonly [Language['label'], string | false, () => Language | Promise<Language>])[] = [
  ['curl', false, openShell],
  ['TypeScript', false, openTypescript],
  [
    'Python',
    PYTHON === undefined ? 'set ATELIER_TEST_PYTHON to a Python, 3.9 or newer' : false,
    () => openPython(PYTHON ?? ''),
  ],
]

const documentOf = (source: string) => readJson(`spec/${source}`) as Document
const examplesOf = (source: string) => readExamples(new URL(`../../spec/${source}`, import.meta.url))

/** The operation with what is asked of this service in place of its example. */
function operationOf({ source }: Scenario, step: Step, world: World): Operation {
  const given = {
    parameters: fill(step.parameters ?? {}, world.values) as Record<string, unknown>,
    body: fill(step.body, world.values),
  }
  const document = withExamples(documentOf(source), { [step.operation]: given })
  const operation = readOperations(document).find(({ name }) => name === step.operation)
  assert.ok(operation !== undefined, `${source} has ${step.operation}`)
  return operation
}

async function follow(scenario: Scenario, step: Step, language: Language, world: World): Promise<void> {
  await step.before?.(world)
  const operation = operationOf(scenario, step, world)
  const example = examplesOf(scenario.source)[step.operation]
  assert.ok(example !== undefined, 'it has an example: run `node test/examples/record.ts`')
  const asked = { parameters: step.parameters, body: step.body }
  const shown = { parameters: example.parameters, body: example.body }
  assert.equal(findDifference(shown, fill(asked, world.values), 'the request'), null)
  const api = {
    ...{ baseUrl: world.url, door: DOORS[scenario.source] ?? null, pythonUrl: `${world.url}/docs/atelier_client.py` },
    needsCredentials: world.token !== null,
  }
  const { source } = toSamples(operation, api).find(({ label }) => label === language.label) ?? assert.fail()
  const isEndless = operation.result.kind === 'events'
  const { said } = await language.run(source, world.token, isEndless)
  if (operation.result.kind !== 'json') return
  const answer = language.label === 'curl' ? toJson(String(said[0])) : said[0]
  keep(step, answer, world.values)
  if (example.answer !== undefined) assert.equal(findDifference(example.answer.body, answer), null)
}

const toJson = (text: string) => (text === '' ? null : (JSON.parse(text) as unknown))

for (const scenario of SCENARIOS) {
  for (const [label, skip, open] of LANGUAGES) {
    describe(`the samples of ${scenario.source}, ${scenario.name}, in ${label}`, { skip }, () => {
      let world: World
      let language: Language
      before(async () => {
        world = await scenario.start()
        language = await open()
      })
      after(async () => {
        await language[Symbol.asyncDispose]()
        await world[Symbol.asyncDispose]()
      })
      for (const step of scenario.steps)
        test(`${step.operation} is told what its example tells`, () => follow(scenario, step, language, world))
    })
  }
}
