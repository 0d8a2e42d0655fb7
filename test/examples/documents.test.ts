/** The examples beside the documents: there is one for every operation that can have one, and each is what its schema says. */
import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { type Examples, withExamples } from '../../lib/openapi/examples.ts'
import { type Document, readOperations } from '../../lib/openapi/operations.ts'
import { project, readJson } from '../architecture/sources.ts'
import { openSpecChecks } from '../support/clients/check-against-spec.ts'
import { WITHOUT } from './scenarios/without.ts'

const FOLDER = 'spec/examples'

for (const name of globSync('*.json', { cwd: path.join(project, FOLDER) })) {
  const source = name.replace('.json', '.openapi.json')
  const document = readJson(`spec/${source}`) as Document
  const examples = readJson(`${FOLDER}/${name}`) as Examples

  test(`every operation of ${source} has an example, or there is a reason why not`, () => {
    const left = WITHOUT[source] ?? {}
    const names = readOperations(document).map((operation) => operation.name)
    assert.deepEqual(
      names.filter((each) => !(each in examples) && !(each in left)),
      [],
    )
    const odd = [...Object.keys(examples).filter((each) => each in left), ...Object.keys(left)]
    assert.deepEqual(
      odd.filter((each) => each in examples || !names.includes(each)),
      [],
    )
  })

  test(`what ${source} shows as answers is what it says of them`, () => {
    const { checkAgainstSpec } = openSpecChecks(source)
    for (const { name: operation, method, path: place } of readOperations(document)) {
      const { answer } = examples[operation] ?? {}
      if (answer !== undefined) checkAgainstSpec(method, place, answer.status, answer.body)
    }
  })

  test(`the document of ${source} holds its examples where OpenAPI has them`, () => {
    const shown = readOperations(withExamples(document, examples))
    for (const { name: operation, answer, body, arguments: args } of shown) {
      const { answer: told, body: asked, parameters = {} } = examples[operation] ?? {}
      assert.deepEqual(answer?.example, told?.body, operation)
      assert.deepEqual(body?.example, asked, operation)
      for (const { wire, example } of args) assert.deepEqual(example, parameters[wire], `${operation} ${wire}`)
    }
  })
}
