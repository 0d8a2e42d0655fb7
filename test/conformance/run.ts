/** Sends requests that are generated from its own documents to one kind of the service, and collects disagreements. */
import { Agent } from 'node:http'
import fc from 'fast-check'
import { type Answer, type CallOptions, call } from '../support/clients/call.ts'
import { judge } from './judge.ts'
import { type GeneratedRequest, type RequestSource, requestsOf } from './requests.ts'
import { type Operation, readServedDocument, type ServedDocument } from './served-document.ts'
import type { ServiceUnderTest, SurfaceUnderTest } from './service.ts'

export interface Report {
  readonly requests: number
  /** Each disagreement once, with an example. */
  readonly findings: readonly string[]
}

export interface RunOptions {
  /** About how many requests are generated. */
  readonly requests: number
  readonly seed: number
}

const BROKEN_SHARE = 0.5
const AT_A_TIME = 8
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE']
const MAX_EXAMPLE_LENGTH = 600

export async function runConformance(service: ServiceUnderTest, options: RunOptions): Promise<Report> {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_A_TIME })
  const findings = new Map<string, string>()
  let requests = 0

  async function send(path: string, sent: CallOptions): Promise<Answer> {
    requests++
    return call(service.url, path, { ...sent, agent }).catch((error: Error) => {
      throw new Error(`${sent.method ?? 'GET'} ${path}: ${error.message}`, { cause: error })
    })
  }
  const tell = (key: string, example: string) => {
    if (!findings.has(key)) findings.set(key, `${key}\n    ${example}`)
  }

  try {
    const surfaces = await Promise.all(
      service.surfaces.map(async (surface) => {
        const { json } = await call(service.url, surface.documentPath, { headers: surface.headers })
        return { surface, document: readServedDocument(json) }
      }),
    )
    const total = surfaces.reduce((sum, { document }) => sum + document.operations.length, 0)
    const perOperation = Math.max(2, Math.round(options.requests / total))
    for (const { surface, document } of surfaces) {
      const run = new SurfaceRun(surface, document, { send, tell })
      await run.methods()
      await run.credentials()
      for (const operation of document.operations) {
        await run.generated(operation, { requests: perOperation, seed: options.seed })
      }
    }
  } finally {
    agent.destroy()
  }
  return { requests, findings: [...findings.values()] }
}

// Streams that end with their reader alone; the tests of the operator's jobs read them.
const ENDLESS: ReadonlySet<string> = new Set(['/admin/v1/events'])

// What is said of a file comes encoded in a header, where no schema reaches it.
const ENCODED: ReadonlySet<string> = new Set(['/api/v2/uploads'])

interface Line {
  send(path: string, sent: CallOptions): Promise<Answer>
  tell(key: string, example: string): void
}

class SurfaceRun {
  readonly #surface: SurfaceUnderTest
  readonly #document: ServedDocument
  readonly #line: Line

  constructor(surface: SurfaceUnderTest, document: ServedDocument, line: Line) {
    this.#surface = surface
    this.#document = document
    this.#line = line
  }

  async generated(operation: Operation, { requests, seed }: RunOptions): Promise<void> {
    const { headers, known } = this.#surface
    const source: RequestSource = { document: this.#document, known, headers }
    const { valid, broken } = requestsOf(operation, source)
    const brokenCount = broken === null ? 0 : Math.round(requests * BROKEN_SHARE)
    const all = [
      ...fc.sample(valid, { numRuns: requests - brokenCount, seed }),
      ...(broken === null ? [] : fc.sample(broken, { numRuns: Math.max(1, brokenCount), seed })),
    ]
    for (let at = 0; at < all.length; at += AT_A_TIME) {
      await Promise.all(all.slice(at, at + AT_A_TIME).map((request) => this.#one(operation, request)))
    }
  }

  async #one(operation: Operation, request: GeneratedRequest): Promise<void> {
    // A socket is asked for by a handshake, which these requests are not.
    if (operation.answers['101'] !== undefined) return
    if (request.broken === null && ENDLESS.has(operation.template)) return
    const answer = await this.#line.send(request.path, request)
    const example = toExample(request, answer)
    for (const fault of judge(this.#document, operation, request, answer)) this.#tell(operation, fault, example)
    const isRefused = answer.status >= 400 && answer.status < 500
    if (request.broken === null && !ENCODED.has(operation.template) && this.#surface.isMalformed(answer)) {
      this.#tell(operation, 'refuses what the document allows', example)
    }
    if (request.broken !== null && !isRefused) {
      this.#tell(operation, `takes what the document forbids (${request.broken})`, example)
    }
  }

  /** Every method that a path does not declare: 405, `Allow` with what it does, in the surface's own words. */
  async methods(): Promise<void> {
    for (const [template, declared] of this.#document.methods) {
      const path = this.#pathFor(template)
      const asked = declared.includes('GET') && !this.#isStream(template) ? ['HEAD'] : []
      const allowed = [...new Set([...declared, ...asked])].sort()
      const others = METHODS.filter((one) => !allowed.includes(one))
      await Promise.all(others.map((method) => this.#refused(template, { path, method, allowed })))
      // One that is declared says something of its own.
      if (asked.length > 0 && !declared.includes('HEAD')) await this.#compareHead(template, path)
      const answer = await this.#line.send(path, { method: 'OPTIONS', headers: this.#surface.headers })
      const allow = String(answer.headers.allow ?? '')
        .split(', ')
        .sort()
      if (answer.status !== 204 || allow.join() !== [...new Set([...allowed, 'OPTIONS'])].sort().join()) {
        this.#line.tell(`${this.#surface.name} OPTIONS ${template}: ${answer.status}, Allow ${allow}`, '')
      }
    }
  }

  #isStream(template: string): boolean {
    const read = this.#document.operations.find((one) => one.template === template && one.method === 'GET')
    return template.endsWith('/events') && read?.answers['200']?.content['application/json'] === undefined
  }

  async #refused(
    template: string,
    { path, method, allowed }: { path: string; method: string; allowed: string[] },
  ): Promise<void> {
    const answer = await this.#line.send(path, { method, headers: this.#surface.headers })
    const example = toExample({ method, path, broken: null }, answer)
    const where = `${this.#surface.name} ${method} ${template}`
    if (answer.status !== 405) this.#line.tell(`${where}: an undeclared method is answered ${answer.status}`, example)
    const allow = String(answer.headers.allow ?? '')
      .split(', ')
      .sort()
    if (allow.join() !== allowed.join()) this.#line.tell(`${where}: Allow is ${allow}, not ${allowed}`, example)
    if (method === 'HEAD' || answer.status < 400) return
    const fault = this.#document.faultOf(this.#document.named(this.#surface.errorSchema), answer.json)
    if (fault !== null) this.#line.tell(`${where}: not the surface's own error: ${fault}`, example)
  }

  /** Whatever can be read can be asked about: the same status, and nothing behind it. */
  async #compareHead(template: string, path: string): Promise<void> {
    const { headers } = this.#surface
    const [full, bare] = [
      await this.#line.send(path, { method: 'GET', headers }),
      await this.#line.send(path, { method: 'HEAD', headers }),
    ]
    if (full.status === bare.status && bare.text === '') return
    this.#line.tell(`${this.#surface.name} HEAD ${template}: ${bare.status}, and GET ${full.status}`, bare.text)
  }

  /** What the document says about credentials is so. */
  async credentials(): Promise<void> {
    for (const operation of this.#document.operations) {
      const { method, template } = operation
      if (operation.isOpen && ENDLESS.has(template)) continue
      const path = this.#pathFor(template)
      const answer = await this.#line.send(path, { method, headers: {} })
      const example = toExample({ method, path, broken: null }, answer)
      if ((answer.status !== 401) !== operation.isOpen) {
        this.#tell(operation, `without credentials ${answer.status}, though the document says otherwise`, example)
      }
      if (answer.status === 401) {
        for (const fault of judge(this.#document, operation, { method, path, broken: null }, answer)) {
          this.#tell(operation, fault, example)
        }
      }
    }
  }

  #pathFor(template: string): string {
    return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(this.#surface.known[name]?.[0] ?? 'nothing'))
  }

  #tell({ id, method, template }: Operation, fault: string, example: string): void {
    this.#line.tell(`${this.#surface.name} ${id} (${method} ${template}): ${fault}`, example)
  }
}

function toExample(request: GeneratedRequest, answer: Answer): string {
  const body = request.body === undefined ? '' : ` ${String(request.body)}`
  const text = `${request.method} ${request.path}${body.slice(0, MAX_EXAMPLE_LENGTH)} -> ${answer.status} ${answer.text.slice(0, 300)}`
  return JSON.stringify(text)
}
