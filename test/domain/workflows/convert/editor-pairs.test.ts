import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { convertWorkflow } from '../../../../src/domain/workflows/convert/convert-file.ts'
import { RECORDED_ON, readEditorCatalog, readEditorPairs } from '../../../support/workflows/editor-pairs.ts'

const catalog = readEditorCatalog()

for (const { name, ui, prompt } of readEditorPairs()) {
  test(`${name}: what is saved becomes what the editor submits`, () => {
    const before = stringifyLosslessJson(ui)
    const { workflow } = convertWorkflow(ui, { catalog, now: RECORDED_ON, random: () => 0 })
    assert.deepEqual(JSON.parse(stringifyLosslessJson(workflow)), JSON.parse(stringifyLosslessJson(prompt)))
    assert.equal(stringifyLosslessJson(ui), before, 'the file itself is left alone')
  })
}
