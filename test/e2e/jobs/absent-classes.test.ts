/** Workflows with classes of ComfyUI that the built-in engine does not have: every surface says what is missing, and that a server has it. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { explainAbsent } from '../../../engine/graph/absent-classes.ts'
import { BUILT_IN_NODES } from '../../../engine/nodes/built-in.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'

const SERVER = /the built-in engine has no diffusion models; connect a ComfyUI server with --comfyui/
const PARTNER =
  /partner node of ComfyUI.*connect a ComfyUI server with --comfyui, or call the model with the node RunModel/
// Beside other processes any engine may come to have it.
const PACK = /custom node may not be installed|no engine has the node class/i

let app: TestApp
before(async () => {
  app = await startTestApp()
})
after(() => app[Symbol.asyncDispose]())

const graphOf = (classType: string) => ({ 3: { class_type: classType, inputs: { seed: 1 } } })
const post = (path: string, body: object) => call(app.url, path, { method: 'POST', body: JSON.stringify(body) })

for (const [classType, says] of [
  ['KSampler', SERVER],
  ['CheckpointLoaderSimple', SERVER],
  ['Epsilon Scaling', SERVER],
  ['KlingTextToVideoNode', PARTNER],
  ['SomebodysOwnNode', PACK],
] as const) {
  test(`${classType} is refused with the same reason by a submit, a prompt and a dry run`, async () => {
    const submitted = await post('/api/v2/jobs', { workflow: graphOf(classType) })
    assert.deepEqual([submitted.status, submitted.json.error.code], [422, 'invalid_workflow'])
    assert.match(submitted.json.error.message, says)
    const [fault] = submitted.json.error.details.node_errors['3']
    assert.equal(fault.reason, 'missing_node_type')
    assert.match(fault.message, says)
    const prompted = await post('/api/prompt', { prompt: graphOf(classType) })
    assert.deepEqual([prompted.status, prompted.json.error.type], [400, 'missing_node_type'])
    assert.match(prompted.json.error.message, says)
    const tried = await post('/api/v2/jobs/validate', { workflow: graphOf(classType) })
    assert.match(tried.text, says)
  })
}

test('a conversion says the same of a file whose values it cannot read', async () => {
  const node = {
    id: 3,
    type: 'KSampler',
    pos: [0, 0],
    mode: 0,
    inputs: [],
    outputs: [],
    widgets_values: [1, 'fixed', 20],
  }
  const file = { nodes: [node], links: [], version: 0.4, last_node_id: 3, last_link_id: 0 }
  const { text } = await post('/api/v2/workflows/convert', { workflow: file })
  assert.match(text, SERVER)
})

test('no class that the engine has is called absent, and with a ComfyUI server the usual hint stays', () => {
  const none = [{ find: () => null }]
  assert.deepEqual(
    BUILT_IN_NODES.map(({ classType }) => classType).filter((classType) => explainAbsent(classType, none) !== null),
    [],
  )
  const [{ definition }] = BUILT_IN_NODES
  const server = { find: (classType: string) => (classType === 'KSampler' ? definition : null) }
  assert.equal(explainAbsent('VAEDecode', [...none, server]), null)
  assert.match(explainAbsent('VAEDecode', none) ?? '', SERVER)
})
