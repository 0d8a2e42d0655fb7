/** A hook that is asked before outputs are handed out, with a real receiver on loopback: by workers of the service and by joined ones. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { ADMIN_TOKEN, joinTestWorker } from '../../support/app/join-worker.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { isText, openSocket } from '../../support/clients/test-socket.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { ALLOW, type Asked, type Moderator, startModerator } from '../../support/moderator.ts'
import { waitUntil } from '../../support/wait-until.ts'

const WORKFLOW = {
  '1': { class_type: 'FakeSampler', inputs: { steps: 3 } },
  '2': { class_type: 'FakeLog', inputs: { text: 'a printed line\n' } },
  '3': { class_type: 'FakeSave', inputs: { text: 'picture', count: 2 } },
  '4': { class_type: 'FakeValue', inputs: { value: 'a poem', key: 'text' } },
}

interface Rig extends AsyncDisposable {
  readonly url: string
  readonly moderator: Moderator
  get(path: string): Promise<Answer>
  submit(workflow?: object, more?: object): Promise<string>
  /** Once it has ended. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  ended(id: string): Promise<any>
  log(id: string): Promise<string>
  /** By node, what the history has of it. */
  shown(id: string): Promise<object>
}

async function startRig(isJoined: boolean, hook: object = {}): Promise<Rig> {
  await using opening = new AsyncDisposableStack()
  const moderator = opening.use(await startModerator())
  const moderation = await moderator.setting({ scope: 'all', before_outputs: hook })
  const engine = createFakeEngine()
  const settings = { moderation, joins: 'on', adminToken: ADMIN_TOKEN }
  const app = opening.use(
    await startTestApp(isJoined ? { settings, overrides: { engines: [] } } : { settings, overrides: { engine } }),
  )
  if (isJoined) opening.use(await joinTestWorker(app, { overrides: { engine }, settings: { embedded: 'on' } }))
  const get = (path: string) => call(app.url, path)
  const opened = opening.move()
  return {
    ...{ url: app.url, moderator, get },
    async submit(workflow = WORKFLOW, more = {}) {
      const body = JSON.stringify({ workflow, ...more })
      const made = await waitUntil(async () => {
        const answer = await call(app.url, '/api/v2/jobs', { method: 'POST', body })
        return answer.status === 201 ? answer : null
      })
      return made.json.id
    },
    ended: (id) =>
      waitUntil(async () => {
        const { json } = await get(`/api/v2/jobs/${id}`)
        return json.completed_at === null ? null : json
      }),
    shown: async (id) => (await get(`/api/history/${id}`)).json[id].outputs,
    log: async (id) => (await get(`/api/v2/jobs/${id}/logs`)).text,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Answers as `decision` says, once the test lets it. */
function holdBack(moderator: Moderator, decision: object) {
  const { promise: asked, resolve: tell } = Promise.withResolvers<Asked>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  moderator.decide = async (question) => {
    tell(question)
    await released
    return decision
  }
  return { asked, release }
}

for (const isJoined of [false, true]) {
  describe(`outputs of ${isJoined ? 'a joined worker' : 'a worker of the service'}`, () => {
    test('are seen by nobody but the hook before its verdict, and by everybody after it', async () => {
      await using rig = await startRig(isJoined)
      const { moderator, get } = rig
      const { asked, release } = holdBack(moderator, ALLOW)
      const socket = await openSocket(new WebSocket(`${rig.url.replace('http', 'ws')}/ws?clientId=me`))
      const id = await rig.submit(WORKFLOW, { metadata: { user: 'ann' } })
      using events = openEvents(rig.url, `/api/v2/jobs/${id}/events`)
      const { data, fault, id: question } = await asked
      assert.deepEqual([fault, question], [null, `outputs_${id}_1`])
      assert.deepEqual(
        [data.account, data.job_id, data.attempt, data.endpoint, data.metadata],
        ['local', id, 1, null, { user: 'ann' }],
      )
      // biome-ignore lint/suspicious/noExplicitAny: as the wire has it
      const told = data.outputs.map((output: any) => [output.index, output.type, output.node_id, output.size_bytes])
      assert.deepEqual(told.slice(0, 2), [
        [0, 'image', '3', 8],
        [1, 'image', '3', 8],
      ])
      assert.equal(await (await fetch(data.outputs[0].url)).text(), 'picture0')
      assert.equal(await (await fetch(data.outputs[2].url)).text(), 'a poem')
      const [first] = data.outputs
      const before = (await get(`/api/v2/jobs/${id}`)).json
      assert.deepEqual([before.status, before.outputs], ['running', []])
      const look = () => fetch(`${rig.url}/api/view?filename=${first.name}&type=output`)
      assert.equal((await look()).status, 404)
      const claim = JSON.stringify({ hash: first.hash })
      const byHash = await call(rig.url, '/api/v2/assets/from-hash', { method: 'POST', body: claim })
      assert.equal(byHash.status, 404, byHash.text)
      assert.equal((await get(`/api/history/${id}`)).text, '{}')
      release()
      const job = await rig.ended(id)
      assert.deepEqual([job.status, job.outputs.length, job.error], ['succeeded', 3, null])
      assert.equal(await (await look()).text(), 'picture0')
      assert.match(await rig.log(id), /a printed line[\s\S]*outputs were checked by the operator's hook/)
      const frames = await events.rest()
      assert.deepEqual(
        [...new Set(frames.map(({ event }) => event))].filter((name) => name === 'preview'),
        [],
      )
      await socket.until((frame) => isText(frame, 'execution_success') && frame.data['prompt_id'] === id)
      assert.deepEqual(
        socket.frames.filter((frame) => 'binary' in frame || frame.type === 'executed'),
        [],
      )
      await socket.close()
    })

    test('are gone when it refuses them, with what the run printed', async () => {
      await using rig = await startRig(isJoined)
      rig.moderator.decide = () => ({ decision: 'refuse', message: 'not for handing out' })
      const id = await rig.submit()
      const job = await rig.ended(id)
      assert.deepEqual([job.status, job.outputs], ['failed', []])
      assert.deepEqual([job.error.code, job.error.message], ['refused_by_policy', 'not for handing out'])
      const [{ data }] = rig.moderator.asked
      assert.equal((await rig.get(`/api/view?filename=${data.outputs[0].name}&type=output`)).status, 404)
      assert.doesNotMatch(await rig.log(id), /a printed line/)
      assert.deepEqual(await rig.shown(id), {})
      assert.match((await rig.get(`/api/history/${id}`)).text, /not for handing out/)
      using events = openEvents(rig.url, `/api/v2/jobs/${id}/events`)
      assert.equal((await events.rest()).at(-1)?.data.status, 'failed')
    })

    test('are what it makes of them', async () => {
      await using rig = await startRig(isJoined)
      const data = Buffer.from('blurred').toString('base64')
      rig.moderator.decide = () => ({
        decision: 'change',
        outputs: [
          { index: 0, data, content_type: 'image/webp' },
          { index: 2, drop: true },
        ],
      })
      const id = await rig.submit()
      const job = await rig.ended(id)
      assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
      const shown = await Promise.all(
        job.outputs.map(async ({ url, content_type: type }: { url: string; content_type: string }) => [
          type,
          await (await fetch(new URL(url, rig.url))).text(),
        ]),
      )
      assert.deepEqual(shown, [
        ['image/webp', 'blurred'],
        ['image/png', 'picture1'],
      ])
      assert.deepEqual(Object.keys(await rig.shown(id)), ['3'])
      assert.match(await rig.log(id), /checked and changed/)
    })

    test('are not handed out when it fails, unless its rule says so', async () => {
      const bytes = { data: 'aGk=', content_type: 'text/plain' }
      const wrong = [
        ...[undefined, 'all', [7], [{ index: 9, ...bytes }], [{ index: 0 }], [{ index: 0, ...bytes, drop: true }]],
        ...[[{ index: 0, ...bytes, data: '*' }], [{ index: 0, ...bytes, content_type: 'x' }]],
        ...[
          [
            { index: 0, ...bytes },
            { index: 0, drop: true },
          ],
        ],
      ].map((outputs) => ({ decision: 'change', outputs }))
      for (const rule of ['refuse', 'allow'] as const) {
        await using rig = await startRig(isJoined, { deadline: '400ms', on_failure: rule })
        for (const decision of ['hang', 'drop', 'no JSON', 503, ...wrong]) {
          rig.moderator.decide = () => decision
          const id = await rig.submit()
          const job = await rig.ended(id)
          const why = JSON.stringify([decision, job.error])
          if (rule === 'refuse') assert.deepEqual([job.error?.code, job.outputs.length], ['check_unavailable', 0], why)
          else assert.deepEqual([job.status, job.outputs.length], ['succeeded', 3], why)
          if (rule === 'allow') assert.match(await rig.log(id), /handed out unchecked/)
        }
      }
    })

    test('are not handed out when the job is canceled while the hook is asked', async () => {
      await using rig = await startRig(isJoined)
      const { asked, release } = holdBack(rig.moderator, ALLOW)
      const id = await rig.submit()
      await asked
      assert.equal((await call(rig.url, `/api/v2/jobs/${id}/cancel`, { method: 'POST' })).status, 200)
      const job = await rig.ended(id)
      assert.deepEqual([job.status, job.outputs], ['canceled', []])
      release()
    })

    test('of a run that failed are not handed out, and the hook is not asked', async () => {
      await using rig = await startRig(isJoined)
      const failing = { ...WORKFLOW, '9': { class_type: 'FakeFail', inputs: {} } }
      const id = await rig.submit(failing)
      const job = await rig.ended(id)
      assert.deepEqual([job.status, job.outputs, rig.moderator.asked], ['failed', [], []])
      assert.match(await rig.log(id), /a printed line/)
      assert.deepEqual(await rig.shown(id), {})
    })
  })
}
