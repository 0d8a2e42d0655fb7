/** What a worker makes of the answers of nodes, and of silence. */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { GatewayClient } from '../../../src/adapters/gateway/gateway-client.ts'

type Answer = readonly [status: number, body: string]

/** A node that always gives the same answer, and counts how often. */
class Node implements AsyncDisposable {
  readonly #server: Server
  asked = 0
  answer: Answer

  private constructor(answer: Answer) {
    this.answer = answer
    this.#server = createServer((_request, response) => {
      this.asked++
      const [status, body] = this.answer
      response.writeHead(status, { 'content-type': 'application/json' }).end(body)
    })
  }

  static async open(...answer: Answer): Promise<Node> {
    const node = new Node(answer)
    await new Promise<void>((resolve) => node.#server.listen(0, '127.0.0.1', resolve))
    return node
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

function refusal(type: string): string {
  return JSON.stringify({ error: { type, message: 'no', details: null, request_id: 'x' } })
}

function clientOf(...nodes: readonly Node[]) {
  const urls = nodes.map(({ url }) => url)
  return new GatewayClient({ urls, key: 'key', instanceId: 'instance', versions: [1], log: silentLog })
}

test('a limit of what was asked for is told, and only what a node says of itself counts as an outage', async () => {
  await using node = await Node.open(200, '{}')
  await using client = clientOf(node)
  const rows: readonly [Answer, string][] = [
    [[429, refusal('rate_limited')], 'rate_limited'],
    [[402, refusal('insufficient_credits')], 'insufficient_credits'],
    [[404, refusal('output_unavailable')], 'output_unavailable'],
    [[503, refusal('overloaded')], 'store_unavailable'],
    [[503, refusal('store_unavailable')], 'store_unavailable'],
    [[503, refusal('shutting_down')], 'store_unavailable'],
    [[502, '<html>'], 'store_unavailable'],
    [[429, 'slow down'], 'store_unavailable'],
    [[418, 'teapot'], 'invalid_request'],
  ]
  for (const [answer, expected] of rows) {
    node.answer = answer
    const asked = client.call({ method: 'POST', path: '/jobs/1/models', json: {} })
    await assert.rejects(asked, { refusal: expected }, answer.join(' '))
  }
})

test('a key that one node refuses and another one accepts goes on; one that no node accepts ends the worker', async () => {
  await using stale = await Node.open(401, refusal('unauthorized'))
  await using good = await Node.open(200, '{}')
  await using client = clientOf(stale, good)
  let isRefused = false
  void client.refused.then(() => {
    isRefused = true
  })
  await assert.rejects(client.call({ method: 'GET', path: '/x' }), { refusal: 'unauthorized' })
  while (good.asked === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  // Its answer has been taken when the next one is.
  await assert.rejects(client.call({ method: 'GET', path: '/x' }), { refusal: 'unauthorized' })
  assert.equal(isRefused, false)
  good.answer = [401, refusal('unauthorized')]
  await assert.rejects(client.call({ method: 'GET', path: '/x' }), { refusal: 'unauthorized' })
  while (!isRefused) {
    // A confirmation that was under way may still have heard the old answer.
    await assert.rejects(client.call({ method: 'GET', path: '/x' }), { refusal: 'unauthorized' })
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
})
