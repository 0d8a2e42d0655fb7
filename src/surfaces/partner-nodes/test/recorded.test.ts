/** Requests of a real ComfyUI's own partner nodes, byte for byte but for pictures, against fake providers. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import {
  RECORDED_NODES,
  type RecordedNode,
  type RecordedRequest,
} from '../../../../test/support/recordings/recorded-nodes.ts'
import { PARTNER_STEPS } from '../../../../test/support/workflows/partner-steps.ts'
import { type NodeService, startNodeService } from './node-service.ts'

const NODES = JSON.parse(readFileSync(RECORDED_NODES, 'utf8')) as readonly RecordedNode[]

let service: NodeService
before(async () => {
  const cards = [...new Set(PARTNER_STEPS.map(({ card }) => card))]
  service = await startNodeService(cards, { veo: { project: 'p', api: 'vertex' } })
})
after(() => service[Symbol.asyncDispose]())

for (const { class: name, model, usd, requests } of NODES) {
  test(`${name} of ComfyUI is served, and ${model} is charged once`, async () => {
    const card = PARTNER_STEPS.find((step) => step.class === name)?.card ?? assert.fail(`no provider of ${name}`)
    const fake = service.fakeOf(card)
    fake.reset('success')
    fake.pendingPolls = 0
    const places: { readonly upload_url: string; readonly download_url: string }[] = []
    for (const request of requests) {
      const upload = new URL(places.at(-1)?.upload_url ?? service.test.url).pathname
      const path = request.path.replace('/customers/storage/{upload}', upload)
      const files = places.map(({ download_url }) => download_url)
      const answer = await service.send(request.method, path, toBody(request, files))
      assert.equal(answer.status, 200, `${request.method} ${path}: ${await answer.clone().text()}`)
      if (path === '/customers/storage') places.push((await answer.json()) as (typeof places)[number])
    }
    assert.equal(await service.charged(), Math.round(Number(usd) * 1_000_000))
    assert.equal(fake.generations, 1)
  })
}

function toBody({ json, form }: RecordedRequest, files: readonly string[]): object | FormData | undefined {
  if (form !== undefined) {
    const made = new FormData()
    for (const { name, value, fileName } of form) {
      if (fileName === undefined) made.append(name, value)
      else made.append(name, new Blob([value], { type: 'image/png' }), fileName)
    }
    return made
  }
  if (json === undefined) return undefined
  const text = files.reduce((body, file, index) => body.replaceAll(`{file ${index + 1}}`, file), JSON.stringify(json))
  return JSON.parse(text) as object
}
