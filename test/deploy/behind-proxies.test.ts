/** Atelier behind the proxies of deploy/proxy, as they stand there but for names, ports and certificates. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { findFreePort } from '../support/network/free-port.ts'
import { waitUntil } from '../support/wait-until.ts'
import { read } from './files.ts'
import { findTool, openFolder, without } from './tools.ts'

const UPLOAD_BYTES = 24 * 2 ** 20

interface Proxied {
  readonly folder: string
  readonly port: number
  readonly app: URL
}

/** Each writes its files into the folder and tells how it is started. */
const PROXIES: Readonly<Record<string, (proxied: Proxied) => { readonly args: string[]; readonly env?: object }>> = {
  nginx({ folder, port, app }) {
    const site = read('deploy/proxy/nginx.conf')
      .replaceAll(/^\s*server 127\.0\.0\.1:\d+ /gm, `    server ${app.host} `)
      .replace('listen 443 ssl http2;', `listen 127.0.0.1:${port};`)
      .replace('listen 80;', `listen unix:${folder}/plain;`)
      .replaceAll(/^\s*ssl_certificate.*$/gm, '')
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    )
    const main = `daemon off; pid ${folder}/pid; error_log stderr;\nevents {}\nhttp { access_log off; ${temporary.join(' ')} include ${folder}/site.conf; }\n`
    writeFileSync(path.join(folder, 'site.conf'), site)
    writeFileSync(path.join(folder, 'nginx.conf'), main)
    return { args: ['-p', folder, '-c', path.join(folder, 'nginx.conf')] }
  },
  caddy({ folder, port, app }) {
    const file = path.join(folder, 'Caddyfile')
    writeFileSync(file, `{\n\tadmin off\n}\n${read('deploy/proxy/Caddyfile')}`)
    const env = { ATELIER_SITE: `http://127.0.0.1:${port}`, ATELIER_NODES: app.host, XDG_DATA_HOME: folder }
    return { args: ['run', '--adapter', 'caddyfile', '--config', file], env: { ...env, XDG_CONFIG_HOME: folder } }
  },
}

for (const [name, prepare] of Object.entries(PROXIES)) {
  describe(`behind ${name}`, without(name), () => {
    const folder = openFolder()
    let app: TestApp
    let proxy: ChildProcess
    let url = ''

    before(async () => {
      // Jobs are taken and wait, so that a stream stays open.
      app = await startTestApp({ settings: { workers: '0' } })
      const port = await findFreePort()
      const { args, env } = prepare({ folder: folder.path, port, app: new URL(app.url) })
      proxy = spawn(findTool(name) ?? name, args, { stdio: 'ignore', env: { ...process.env, ...env } })
      url = `http://127.0.0.1:${port}`
      await waitUntil(async () => {
        assert.equal(proxy.exitCode, null, `${name} ended`)
        const answer = await fetch(`${url}/readyz`).catch(() => null)
        return answer?.ok === true ? answer : null
      })
    })
    after(async () => {
      if (proxy.exitCode === null) {
        // Caddy waits for connections that fetch keeps open; nginx would leave its workers behind.
        proxy.kill(name === 'caddy' ? 'SIGKILL' : 'SIGTERM')
        await once(proxy, 'exit')
      }
      await app[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    })

    test('an event arrives while its stream is open', async () => {
      const workflow = { 1: { class_type: 'PreviewAny', inputs: { source: 'x' } } }
      const answer = await fetch(`${url}/api/v2/jobs`, { method: 'POST', body: JSON.stringify({ workflow }) })
      const { id } = (await answer.json()) as { id: string }
      const leave = new AbortController()
      const stream = await fetch(`${url}/api/v2/jobs/${id}/events`, { signal: leave.signal })
      const { value } = (await stream.body?.getReader().read()) ?? {}
      assert.match(Buffer.from(value ?? []).toString(), /queued/)
      leave.abort()
    })

    test('a socket is opened and heard', async () => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`)
      const [message] = (await once(socket, 'message')) as [Buffer]
      assert.match(message.toString(), /"type":"status"/)
      socket.terminate()
    })

    test('a large upload passes through', async () => {
      const bytes = randomBytes(UPLOAD_BYTES)
      const form = new FormData()
      form.set('content_type', 'application/octet-stream')
      form.set('file_path', 'large.bin')
      form.set('file', new Blob([bytes]), 'large.bin')
      const answer = await fetch(`${url}/api/v2/assets`, { method: 'POST', body: form })
      assert.equal(answer.status, 201)
      const { id } = (await answer.json()) as { id: string }
      const content = await fetch(`${url}/api/v2/assets/${id}/content`)
      const found = createHash('sha256').update(Buffer.from(await content.arrayBuffer()))
      assert.equal(found.digest('hex'), createHash('sha256').update(bytes).digest('hex'))
    })
  })
}
