/** What becomes of files that are made to be slow. How long it takes is measured by `npm run bench graph`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../../src/domain/errors.ts'
import { createConvertFile } from '../../../../src/domain/workflows/convert/convert-file.ts'
import { readEditorCatalog } from '../../../support/workflows/editor-pairs.ts'
import { HARD_FILES } from '../../../support/workflows/hard-files.ts'

const PARTS = /more than 200000 inputs and values/
const COMPARED = /more than 2000000 slots and links that could belong together/
const REFUSED: Readonly<Record<string, RegExp>> = {
  'as many nodes as a file may have': PARTS,
  'nodes of the class with the most inputs': PARTS,
  'links in a circle': /lead in a circle/,
  'subgraphs that double': /more than 20000 nodes/,
  'links deep inside of subgraphs': /more than 1000000 steps along its links/,
  'subgraphs in circles': /more than 100 deep/,
  'one subgraph, shown by many': /more than 20000 nodes/,
  'old lists of widgets': COMPARED,
  'inputs of a subgraph that name each other’s links': COMPARED,
  'a Primitive node with a long text for everybody': /more than 33554432 characters/,
  'inputs that grow': COMPARED,
}

test('files that are made to be slow are converted, or refused for what there is too much of', async () => {
  const catalog = readEditorCatalog()
  let asked = 0
  const find: typeof catalog.find = (type) => {
    asked += 1
    return catalog.find(type)
  }
  const counting = { ...catalog, find }
  const convert = createConvertFile({ catalog: () => counting, clock: { now: () => new Date() }, random: () => 0 })
  for (const [name, make] of Object.entries(HARD_FILES)) {
    const file = make()
    asked = 0
    const outcome = await convert(file as JsonValue, null).then(
      () => 'converted',
      (error) => (error instanceof ServiceError ? error.message : Promise.reject(error)),
    )
    assert.match(outcome, REFUSED[name] ?? /^converted$/, name)
    // A class is looked up a few times for each node, however the nodes hang together.
    assert.ok(asked <= 8 * 20_000, `${name}: ${asked} look-ups`)
  }
})
