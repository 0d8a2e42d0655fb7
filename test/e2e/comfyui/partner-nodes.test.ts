/** The unmodified partner nodes of a real ComfyUI that the service starts, through `/proxy`, with fake providers behind it. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import { type RealComfyuiApp, startRealComfyuiApp } from '../../support/app/real-comfyui-app.ts'
import { hasRealComfyui } from '../../support/engines/real-comfyui.ts'
import { wanFake } from '../../support/providers/fake-providers/queues.ts'
import { type NodeRecorder, type RecordedNode, startNodeRecorder } from '../../support/recordings/recorded-nodes.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type ClassInfo, type PartnerStep, toPartnerGraph } from '../../support/workflows/partner-graphs.ts'
import { PARTNER_STEPS } from '../../support/workflows/partner-steps.ts'

const CARDS = [...new Set(PARTNER_STEPS.map(({ card }) => card))]
const byText = (one: object, other: object) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)
const EXPECTED = PARTNER_STEPS.map(({ model, usd }) => ({ model, status: 'succeeded', cost_usd: usd })).toSorted(byText)

// Asked for by naming one.
if (hasRealComfyui) {
  describe('the partner nodes of a real ComfyUI', () => {
    let app: RealComfyuiApp
    let classes: Readonly<Record<string, ClassInfo>>
    before(async () => {
      app = await startRealComfyuiApp(CARDS)
      classes = (await app.ask('/api/object_info')).json
    })
    after(() => app[Symbol.asyncDispose]())

    function reset(pendingPolls: number): void {
      for (const card of CARDS) {
        app.fakeOf(card).reset('success')
        app.fakeOf(card).pendingPolls = pendingPolls
      }
    }
    const graphOf = (steps: readonly PartnerStep[]) => toPartnerGraph(steps, classes)
    /** Of each provider: what it made, and how many tasks it was asked about. */
    const made = () =>
      CARDS.map((card) => [card.provider, app.fakeOf(card).generations, app.fakeOf(card).polled].join(' '))
    const WANTED = CARDS.map((card) => {
      const steps = PARTNER_STEPS.filter((step) => step.card === card)
      return [card.provider, steps.length, steps.filter(({ isPolled }) => isPolled).length].join(' ')
    })
    const ended = async (id: string) => (await app.callsOf(id)).filter(({ status }) => status === 'succeeded').length

    test('make pictures, films and texts of twelve providers, and each call is charged once', async () => {
      reset(1)
      const id = await app.submit(graphOf(PARTNER_STEPS))
      const job = await app.untilEnded(id)
      assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
      assert.deepEqual(made(), WANTED)
      // The last charges may be under way when the job ends.
      await waitUntil(async () => (await ended(id)) === PARTNER_STEPS.length)
      assert.deepEqual((await app.callsOf(id)).toSorted(byText), EXPECTED)
    })

    test('that show no key, or one of somebody else, are refused before anything is sent', async () => {
      reset(0)
      // Another seed: ComfyUI answers an equal node of an earlier job from its cache, without a call.
      const graph = graphOf([{ class: 'WanTextToImageApi', inputs: { seed: 2 } }])
      for (const key of [null, 'comfyui-somebody-elses']) {
        const job = await app.untilEnded(await app.submit(graph, key))
        assert.equal(job.status, 'failed')
        assert.match(job.error.message, /Unauthorized/)
      }
      // What an earlier test left under way is still asked about.
      assert.deepEqual(app.fakeOf(wanFake).generations, 0)
    })

    test('get what was begun before the service was killed, and nothing is made or charged a second time', async () => {
      // Nobody finds a task finished before the kill.
      reset(1_000_000)
      const id = await app.submit(graphOf(PARTNER_STEPS))
      const atOnce = PARTNER_STEPS.filter(({ isPolled }) => !isPolled).length
      await waitUntil(
        async () => String(made()) === String(WANTED) && (await ended(id)) === atOnce,
        () => String(made()),
      )
      await app.killAndStart()
      for (const card of CARDS) app.fakeOf(card).pendingPolls = 0
      const job = await app.untilEnded(id)
      assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
      assert.deepEqual(made(), WANTED)
      await waitUntil(async () => (await ended(id)) === PARTNER_STEPS.length)
      assert.deepEqual((await app.callsOf(id)).toSorted(byText), EXPECTED)
    })
  })
}

const recordsTo = process.env['ATELIER_TEST_RECORD']

// Asked for by naming the file to write to.
if (hasRealComfyui && recordsTo !== undefined) {
  test('what the nodes send is recorded, each by itself', async () => {
    await using stack = new AsyncDisposableStack()
    const recorders: NodeRecorder[] = []
    const apiBaseOf = async (service: string) => {
      const recorder = stack.use(await startNodeRecorder(service))
      recorders.push(recorder)
      return recorder.url
    }
    const app = stack.use(await startRealComfyuiApp(CARDS, { apiBaseOf }))
    const classes = (await app.ask('/api/object_info')).json
    const nodes: RecordedNode[] = []
    for (const step of PARTNER_STEPS) {
      for (const card of CARDS) app.fakeOf(card).reset('success')
      app.fakeOf(step.card).pendingPolls = 0
      recorders[0]?.take()
      const job = await app.untilEnded(await app.submit(toPartnerGraph([step], classes)))
      assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
      nodes.push({ class: step.class, model: step.model, usd: step.usd, requests: recorders[0]?.take() ?? [] })
    }
    await writeFile(String(recordsTo), `${JSON.stringify(nodes, null, 2)}\n`)
  })
}
