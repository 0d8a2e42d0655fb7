import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { SETTINGS } from '../../src/config/settings/settings.ts'
import { project, read } from './files.ts'
import { openFolder, runTool, without } from './tools.ts'

const nginx = read('deploy/proxy/nginx.conf')
const caddy = read('deploy/proxy/Caddyfile')

test('nginx takes its file', without('nginx'), () => {
  using folder = openFolder()
  const key = ['-keyout', path.join(folder.path, 'atelier.key'), '-out', path.join(folder.path, 'atelier.pem')]
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=atelier.example.com']
  execFileSync('openssl', [...request, ...key], { stdio: 'ignore' })
  writeFileSync(path.join(folder.path, 'site.conf'), nginx.replaceAll('/etc/nginx/certificates', folder.path))
  const main = `pid ${folder.path}/pid; error_log stderr;\nevents {}\nhttp { access_log off; include ${folder.path}/site.conf; }\n`
  writeFileSync(path.join(folder.path, 'nginx.conf'), main)
  const { code, output } = runTool('nginx', ['-t', '-p', folder.path, '-c', path.join(folder.path, 'nginx.conf')])
  assert.equal(code, 0, output)
  assert.doesNotMatch(output, /warn|emerg/)
})

test('Caddy takes its file, as it stands and as the Compose file uses it', without('caddy'), () => {
  const file = path.join(project, 'deploy/proxy/Caddyfile')
  for (const env of [{}, { ATELIER_SITE: ':8080', ATELIER_NODES: 'api-a:8189 api-b:8189' }] as Record<
    string,
    string
  >[]) {
    const { code, output } = runTool('caddy', ['validate', '--adapter', 'caddyfile', '--config', file], env)
    assert.equal(code, 0, output)
    assert.doesNotMatch(output, /"level":"warn"/)
  }
})

test('both wait a minute longer than the longest call, take what may be uploaded, and pass events on at once', () => {
  const deadlineSeconds = SETTINGS.routerDeadline.read(SETTINGS.routerDeadline.fallback) / 1000
  const waits = [/proxy_read_timeout (\d+)s/.exec(nginx), /response_header_timeout (\d+)s/.exec(caddy)]
  for (const found of waits) assert.equal(Number(found?.[1]), deadlineSeconds + 60)
  const gibibytes = SETTINGS.maxUpload.read(SETTINGS.maxUpload.fallback) / 2 ** 30
  assert.match(nginx, new RegExp(`client_max_body_size\\s+${gibibytes}g;`))
  assert.match(caddy, new RegExp(`max_size ${gibibytes}GiB`))
  assert.match(nginx, /proxy_buffering\s+off;/)
  assert.match(nginx, /proxy_request_buffering off;/)
  assert.match(caddy, /flush_interval -1/)
})
