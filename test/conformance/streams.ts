/** What a job's event stream and the v1 socket say while jobs run, held against the schemas that the documents declare. */
import WebSocket from 'ws'
import { call } from '../support/clients/call.ts'
import { openEvents } from '../support/clients/event-reader.ts'
import { isText, openSocket } from '../support/clients/test-socket.ts'
import { readServedDocument, type Schema, type ServedDocument } from './served-document.ts'
import type { ServiceUnderTest, SurfaceUnderTest } from './service.ts'

/** Each waits at its gate until somebody listens, the last one for ever; together they say everything that can be said. */
const GRAPHS = [
  {
    '0': { class_type: 'FakeSource', inputs: {} },
    '1': { class_type: 'FakeGate', inputs: {} },
    '2': { class_type: 'FakeSampler', inputs: { steps: 3 } },
    '3': { class_type: 'FakeSave', inputs: { text: 'streamed', count: 2 } },
    '4': { class_type: 'FakeValue', inputs: { value: 7, key: 'text' } },
    '5': { class_type: 'FakeBlock', inputs: {} },
  },
  { '1': { class_type: 'FakeGate', inputs: {} }, '2': { class_type: 'FakeFail', inputs: {} } },
  { '1': { class_type: 'FakeGate', inputs: {} }, '2': { class_type: 'FakeHang', inputs: {} } },
]
const CACHED = ['0']
const ENDS = ['execution_success', 'execution_error', 'execution_interrupted']

export async function streamFaults(
  service: ServiceUnderTest,
): Promise<{ faults: string[]; heard: ReadonlySet<string> }> {
  const faults: string[] = []
  const heard = new Set<string>()
  service.engine.faults.cached = CACHED
  for (const surface of service.surfaces) {
    const listen = surface.name === 'jobs-v2' ? listenToEvents : surface.name === 'legacy-v1' ? listenToSocket : null
    if (listen === null) continue
    const { json } = await call(service.url, surface.documentPath, { headers: surface.headers })
    const document = readServedDocument(json)
    const schemas = document.streamed(surface.name === 'jobs-v2' ? 'getJobEvents' : 'openSocket')
    for (const [name, value] of await listen(service, surface)) {
      heard.add(`${surface.name} ${name}`)
      const fault = faultOf(document, schemas[name], value)
      if (fault !== null) faults.push(`${surface.name} ${name}: ${fault} in ${JSON.stringify(value)}`)
    }
  }
  service.engine.faults.cached = []
  return { faults, heard }
}

function faultOf(document: ServedDocument, schema: Schema | undefined, value: unknown): string | null {
  return schema === undefined ? 'is not declared' : document.faultOf(schema, value)
}

function isHanging(graph: object): boolean {
  return JSON.stringify(graph).includes('FakeHang')
}

type Said = readonly (readonly [name: string, value: unknown])[]

async function listenToEvents({ url, engine }: ServiceUnderTest, { headers }: SurfaceUnderTest): Promise<Said> {
  const said: [string, unknown][] = []
  for (const workflow of GRAPHS) {
    const body = JSON.stringify({ workflow })
    const { json: job } = await call(url, '/api/v2/jobs', { method: 'POST', headers, body })
    for (const isLive of [true, false]) {
      using reader = openEvents(url, `/api/v2/jobs/${job.id}/events`, headers)
      await reader.head
      if (isLive) engine.openGate()
      for (let frame = await reader.next(); frame !== null; frame = await reader.next()) {
        if (frame.event !== 'comment') said.push([frame.event, frame.data])
        if (isHanging(workflow) && frame.data.current_node === '2')
          await call(url, job.urls.cancel, { method: 'POST', headers })
      }
    }
  }
  return said
}

async function listenToSocket({ url, engine }: ServiceUnderTest, { headers }: SurfaceUnderTest): Promise<Said> {
  const said: [string, unknown][] = []
  for (const prompt of GRAPHS) {
    const socket = await openSocket(new WebSocket(`${url.replace('http', 'ws')}/ws?clientId=listener`, { headers }))
    socket.ws.send(JSON.stringify({ type: 'feature_flags', data: { supports_preview_metadata: true } }))
    const body = JSON.stringify({ prompt, client_id: 'listener' })
    const { json } = await call(url, '/api/prompt', { method: 'POST', headers, body })
    engine.openGate()
    if (isHanging(prompt)) {
      await socket.until((frame) => isText(frame, 'executing') && frame.data['node'] === '2')
      await call(url, '/api/interrupt', { method: 'POST', headers })
    }
    await socket.until(
      (frame) =>
        ENDS.some((end) => isText(frame, end) && frame.data['prompt_id'] === json.prompt_id) &&
        !(isText(frame, 'execution_error') && frame.data['exception_type'] === 'ExecutionBlocked'),
    )
    await socket.close()
    for (const frame of socket.frames) if ('type' in frame) said.push([frame.type, frame.data])
  }
  return said
}
