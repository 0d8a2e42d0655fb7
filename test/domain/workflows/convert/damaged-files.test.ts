import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGraph } from '../../../../engine/graph/graph-json.ts'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../../src/domain/errors.ts'
import { convertWorkflow } from '../../../../src/domain/workflows/convert/convert-file.ts'
import { drawnCases } from '../../../support/drawn-cases.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { damage } from '../../../support/workflows/damage.ts'
import { RECORDED_ON, readEditorCatalog, readEditorPairs } from '../../../support/workflows/editor-pairs.ts'

const catalog = readEditorCatalog()
const pairs = readEditorPairs()
const TIMES = drawnCases(2_500)

test('a damaged file is refused with a reason, or becomes a graph without dangling links', () => {
  const random = seededRandom(43)
  let refused = 0
  for (let time = 0; time < TIMES; time++) {
    const { name, ui } = pairs[time % pairs.length]
    const file = damage(ui, random.next)
    try {
      const { workflow } = convertWorkflow(file, { catalog, now: RECORDED_ON, random: () => 0 })
      checkLinks(workflow)
    } catch (error) {
      if (!(error instanceof ServiceError)) throw new Error(`damage ${time} of ${name}`, { cause: error })
      assert.equal(error.refusal, 'invalid_workflow')
      assert.notEqual(error.message, '')
      refused++
    }
  }
  assert.ok(refused > TIMES / 20 && refused < TIMES, `${refused} of ${TIMES} were refused`)
})

function checkLinks(workflow: JsonObject): void {
  const graph = readGraph(workflow)
  for (const { inputs } of graph.values()) {
    for (const value of Object.values(inputs)) if (Array.isArray(value)) assert.ok(graph.has(String(value[0])))
  }
}
