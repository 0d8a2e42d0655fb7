/** Classes with rules of their own: their server judges, and its refusal is the answer to the submit wherever it comes in time. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { call } from '../../support/clients/call.ts'

function pickyGraph(inputs: object): Record<string, object> {
  return {
    '1': { class_type: 'DemoPicky', inputs },
    '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'picky' } },
  }
}

describe('classes that judge themselves', () => {
  test('values beyond bounds and lists, and links of other types, are left to the server', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    const beyond = await app.submit(pickyGraph({ strength: 5, mode: 'neither' }))
    await app.until(beyond, 'succeeded')
    const linked = {
      ...pickyGraph({ strength: 0.5, like: ['3', 0] }),
      '3': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 1 } },
    }
    await app.until(await app.submit(linked), 'succeeded')
  })

  test('the classes of ComfyUI itself are judged here', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    const workflow = {
      '3': { class_type: 'EmptyImage', inputs: { width: -1, height: 8, batch_size: 1, color: 1 } },
      '2': { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: 'x' } },
    }
    const refused = await call(app.url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
    assert.equal(refused.status, 422)
    assert.equal(refused.json.error.details.node_errors['3'][0].reason, 'value_smaller_than_min')
    assert.equal(app.fakes[0]?.executions.length, 0)
  })

  test('what is certain is refused at once, whoever judges the rest', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    for (const [inputs, reason] of [
      [{}, 'missing_input'],
      [{ strength: 'much' }, 'invalid_input_type'],
      [{ strength: ['9', 0] }, 'exception_during_inner_validation'],
    ] as const) {
      const body = JSON.stringify({ workflow: pickyGraph(inputs) })
      const refused = await call(app.url, '/api/v2/jobs', { method: 'POST', body })
      assert.equal(refused.status, 422)
      assert.equal(refused.json.error.details.node_errors['1'][0].reason, reason)
    }
  })

  test('a refusal of the server is the 422 of the submit, and nothing of the job stays', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    const headers = { 'idempotency-key': 'picky-1' }
    const send = (strength: number) =>
      call(app.url, '/api/v2/jobs', {
        method: 'POST',
        headers,
        body: JSON.stringify({ workflow: pickyGraph({ strength }), metadata: { scene: '1' } }),
      })
    const refused = await send(7)
    assert.equal(refused.status, 422)
    assert.equal(refused.json.error.code, 'invalid_workflow')
    assert.deepEqual(refused.json.error.details.node_errors, {
      '1': [{ field: 'strength', reason: 'custom_validation_failed', message: 'strength - too strong for nothing' }],
    })
    const listed = await call(app.url, '/api/v2/jobs')
    assert.deepEqual(listed.json.jobs, [])
    const again = await send(3)
    assert.equal(again.status, 201, 'the key was not spent')
    await app.until(again.json.id, 'succeeded')
  })

  test('on the legacy surface it is the 400 of POST /prompt, in the words of the server', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    const body = JSON.stringify({ prompt: pickyGraph({ strength: 7 }) })
    const refused = await call(app.url, '/api/prompt', { method: 'POST', body })
    assert.equal(refused.status, 400)
    assert.equal(refused.json.error.type, 'prompt_outputs_failed_validation')
    assert.equal(refused.json.node_errors['1'].errors[0].type, 'custom_validation_failed')
    assert.equal(refused.json.node_errors['1'].class_type, 'DemoPicky')
    const queue = await call(app.url, '/api/queue')
    assert.deepEqual([queue.json.queue_running, queue.json.queue_pending], [[], []])
    const history = await call(app.url, '/api/history')
    assert.deepEqual(history.json, {})
  })

  test('a submit right after the end of a run waits until the slot of that is free, and gets the refusal of the server', async () => {
    await using app = await startFleetApp({ servers: [{}], bounds: { freeSettleMs: 300 } })
    // After such a run the slot stays taken until the server has freed its memory.
    app.fakes[0].faults.outOfMemory = 2
    await app.until(await app.submit(pictureGraph(1)), 'failed')
    const body = JSON.stringify({ prompt: pickyGraph({ strength: 7 }), client_id: 'c' })
    const refused = await call(app.url, '/api/prompt', { method: 'POST', body })
    assert.deepEqual([refused.status, refused.json.error?.type], [400, 'prompt_outputs_failed_validation'])
  })

  test('a refusal that comes after acceptance ends the job, with the node and the reason', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    const [fake] = app.fakes
    fake.hold('running')
    const busy = await app.submit(pictureGraph(1))
    await fake.held('running')
    const late = await app.submit(pickyGraph({ strength: 7 }))
    fake.release('running')
    const job = await app.until(late, 'failed')
    assert.equal(job.error.code, 'invalid_workflow')
    assert.match(job.error.message, /node 1 \(DemoPicky\): .*strength - too strong/)
    assert.equal(job.error.node_id, '1')
    await app.until(busy, 'succeeded')
  })
})
