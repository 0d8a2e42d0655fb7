/**
 * What partner nodes of a real ComfyUI sent, kept as a fixture. The recorder stands between ComfyUI and the service. Keys are left
 * out, and pictures and films are cut to their first bytes: nothing here looks into them.
 */
import { request as send } from 'node:http'
import { type HttpFake, readBody, startHttpFake } from '../providers/http-fake.ts'

export const RECORDED_NODES = new URL('../../fixtures/partner-nodes/comfyui-0.7.0.json', import.meta.url)

export interface RecordedRequest {
  readonly method: string
  /** `{upload}` stands for the address that the last begin of an upload gave. */
  readonly path: string
  /** A text holds `{file 1}` for the address of the first file that was handed over. */
  readonly json?: unknown
  readonly form?: readonly RecordedPart[]
}

export interface RecordedPart {
  readonly name: string
  readonly value: string
  /** Of a file. */
  readonly fileName?: string
}

export interface RecordedNode {
  readonly class: string
  readonly model: string
  readonly usd: string
  readonly requests: readonly RecordedRequest[]
}

export interface NodeRecorder extends HttpFake {
  /** What came since the last look. */
  take(): RecordedRequest[]
}

const CUT = 'iVBORw0KGgo='

export async function startNodeRecorder(service: string): Promise<NodeRecorder> {
  let requests: RecordedRequest[] = []
  let files: string[] = []
  const toText = (text: string) =>
    files.reduce((shown, file, index) => shown.replaceAll(file, `{file ${index + 1}}`), cutBytes(text))

  const fake = await startHttpFake(async (incoming, response) => {
    const body = await readBody(incoming)
    const { method = 'GET', url = '/', headers } = incoming
    const path = url.replace(/^(\/customers\/storage\/).+$/, '$1{upload}')
    const type = headers['content-type'] ?? ''
    const boundary = /boundary=(\S+)/.exec(type)?.[1]
    requests.push({
      method,
      path,
      ...(type.startsWith('application/json') && body.length > 0 && { json: JSON.parse(toText(body.toString())) }),
      ...(boundary !== undefined && { form: toParts(body, boundary) }),
    })
    const answer = await forward(new URL(url, service), { method, headers }, body)
    const isPlace = method === 'POST' && url === '/customers/storage'
    if (isPlace) files.push(JSON.parse(answer.body.toString()).download_url)
    response.writeHead(answer.status, answer.headers).end(answer.body)
  })
  return {
    ...fake,
    take() {
      const taken = requests
      requests = []
      files = []
      return taken
    },
  }
}

interface Forwarded {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: Buffer
}

function forward(to: URL, options: object, body: Buffer): Promise<Forwarded> {
  return new Promise((resolve, reject) => {
    const outgoing = send(to, options, async (incoming) => {
      const { statusCode: status = 502, headers } = incoming
      resolve({ status, headers, body: await readBody(incoming) })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

function cutBytes(text: string): string {
  return text.replace(/"(data:[a-z0-9/]+;base64,)?[A-Za-z0-9+/]{200,}=*"/g, `"$1${CUT}"`)
}

function toParts(body: Buffer, boundary: string): RecordedPart[] {
  const texts = body.toString('latin1').split(`--${boundary}`).slice(1, -1)
  return texts.map((text) => {
    const [head, value] = [text.slice(0, text.indexOf('\r\n\r\n')), text.slice(text.indexOf('\r\n\r\n') + 4, -2)]
    const name = /\bname="([^"]*)"/.exec(head)?.[1] ?? ''
    const fileName = /filename="([^"]*)"/.exec(head)?.[1]
    return fileName === undefined ? { name, value } : { name, value: CUT, fileName }
  })
}
