/**
 * A hook of moderation on loopback that answers as a test says, and checks every signature with the official library. It writes the
 * setting that names it.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'

export interface Asked {
  readonly type: 'before_run' | 'before_outputs'
  readonly id: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  readonly data: any
  /** null: it was signed as it should be. */
  readonly fault: string | null
}

/** An object is sent as JSON, a text as it is. `hang`: never an answer; `drop`: the connection is cut; a number: that status. */
type Decision = object | string | number

export interface Moderator extends AsyncDisposable {
  readonly url: string
  readonly asked: readonly Asked[]
  /** How many questions were open at once, at most. */
  readonly mostOpen: number
  decide: (asked: Asked) => Decision | Promise<Decision>
  /** The name of a file with the setting `moderation`, where `before_run` and `before_outputs` may say more of each hook. */
  setting(more: { scope?: string; before_run?: object; before_outputs?: object }): Promise<string>
}

export const ALLOW = { decision: 'allow' }
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

export async function startModerator(port = 0): Promise<Moderator> {
  const asked: Asked[] = []
  const webhook = new Webhook(SECRET)
  const folder = await mkdtemp(join(tmpdir(), 'atelier-moderator-'))
  let open = 0
  let mostOpen = 0
  let files = 0

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    mostOpen = Math.max(mostOpen, ++open)
    response.on('close', () => open--)
    let body = ''
    for await (const chunk of request) body += chunk
    const { type, data } = JSON.parse(body)
    const question = { type, data, id: String(request.headers['webhook-id']), fault: faultOf(body, request) }
    asked.push(question)
    const decision = await moderator.decide(question)
    if (decision === 'drop') request.socket.destroy()
    else if (typeof decision === 'number')
      response.writeHead(decision, { location: '/elsewhere' }).end('{"decision":"allow"}')
    else if (decision !== 'hang') response.end(typeof decision === 'string' ? decision : JSON.stringify(decision))
  }

  function faultOf(body: string, { headers }: IncomingMessage): string | null {
    try {
      webhook.verify(body, headers as Record<string, string>)
      return null
    } catch (error) {
      return (error as Error).message
    }
  }

  const server = createServer((request, response) => void take(request, response).catch(() => response.destroy()))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const moderator: Moderator = {
    url,
    asked,
    get mostOpen() {
      return mostOpen
    },
    decide: () => ALLOW,
    async setting({ scope, ...hooks }) {
      const path = join(folder, `moderation-${files++}.json`)
      const named = Object.entries(hooks).map(([name, more]) => [
        name,
        { url: `${url}/${name}`, secret: SECRET, ...more },
      ])
      await writeFile(path, JSON.stringify({ ...(scope !== undefined && { scope }), ...Object.fromEntries(named) }))
      return path
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await rm(folder, { recursive: true, force: true })
    },
  }
  return moderator
}
