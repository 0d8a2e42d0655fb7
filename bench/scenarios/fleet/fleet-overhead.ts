/**
 * Time from submit to the terminal status through the service, against the same prompt posted directly to the ComfyUI server, in
 * alternation. The direct client waits for the end on the socket; the service also stores the outputs before it reports the end.
 */
import { WebSocket } from 'ws'
import { submitJob, waitForEnd } from '../../kit/client-steps.ts'
import type { Figure } from '../../kit/figure.ts'
import { forkServer } from '../../kit/server-child.ts'
import { freshWorkflow } from '../../kit/workflows.ts'

const WARM_UP = 30
const JOBS = 200

/** Posts prompts and hears their ends, as a client of ComfyUI does. */
async function openDirect(url: string) {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws?clientId=bench`)
  const ended = new Map<string, () => void>()
  socket.on('message', (data, isBinary) => {
    if (isBinary) return
    const message = JSON.parse(String(data)) as { type: string; data: { node?: unknown; prompt_id?: string } }
    if (message.type === 'executing' && message.data.node === null) ended.get(message.data.prompt_id ?? '')?.()
  })
  await new Promise((resolve) => socket.once('open', resolve))
  return {
    async run(graph: object): Promise<void> {
      const promptId = crypto.randomUUID()
      const over = new Promise<void>((resolve) => ended.set(promptId, resolve))
      const body = JSON.stringify({ prompt: graph, prompt_id: promptId, client_id: 'bench' })
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${url}/prompt`, { method: 'POST', body, headers })
      await answer.arrayBuffer()
      await over
      ended.delete(promptId)
    },
    close: () => socket.close(),
  }
}

export async function fleetOverhead(): Promise<Figure[]> {
  await using engine = await forkServer('bench/servers/fake-comfyui.ts')
  await using atelier = await forkServer('bench/servers/atelier.ts', { comfyui: engine.url })
  const direct = await openDirect(engine.url)
  const through: number[] = []
  const straight: number[] = []
  for (let index = 0; index < WARM_UP + JOBS; index++) {
    const directAt = performance.now()
    await direct.run(freshWorkflow(2 * index))
    const submitAt = performance.now()
    const job = await submitJob(atelier.url, freshWorkflow(2 * index + 1))
    await waitForEnd(atelier.url, job.id)
    const endAt = performance.now()
    if (index < WARM_UP) continue
    straight.push(submitAt - directAt)
    through.push(endAt - submitAt)
  }
  direct.close()
  const p50 = percentile(through, 0.5)
  const directP50 = percentile(straight, 0.5)
  const detail = { p50, p99: percentile(through, 0.99), directP50, directP99: percentile(straight, 0.99) }
  const measured = Math.max(0, p50 - directP50)
  const name = 'submit to terminal beyond a ComfyUI server itself, p50'
  // Less is not worth working for: what users run takes seconds.
  return [{ name, measured, unit: 'ms', bar: 50, direction: 'at_most', detail }]
}

function percentile(values: number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]
}
