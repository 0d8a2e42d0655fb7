import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { type ComposeFile, project, read, readCompose } from './files.ts'
import { judgeCompose } from './schemas.ts'
import { runTool } from './tools.ts'

const file = readCompose()
const OWN = ['migrate', 'api-a', 'api-b', 'worker']
const SECRETS = {
  POSTGRES_PASSWORD: 'p',
  ATELIER_SECRET_KEY: 'k',
  ATELIER_TOKEN: 't',
  STORAGE_KEY_ID: 'i',
  STORAGE_KEY_SECRET: 's',
}

test('the Compose file fits the Compose specification', () => {
  assert.deepEqual(judgeCompose(file), [])
})

test('the example for one machine with a graphics card fits it too, and lets nobody in without a token', () => {
  const example = parse(read('examples/compose-gpu.yaml')) as ComposeFile
  assert.deepEqual(judgeCompose(example), [])
  const { ports } = example.services['atelier'] as unknown as { readonly ports: readonly string[] }
  assert.deepEqual(ports, ['127.0.0.1:8189:8189'])
  assert.match(read('examples/compose-gpu.yaml'), /ATELIER_TOKEN: \$\{ATELIER_TOKEN:\?/)
})

test('the schema would find a word that Compose does not know', () => {
  const { services } = file
  const broken = { ...file, services: { ...services, worker: { ...services['worker'], commando: ['work'] } } }
  assert.match(judgeCompose(broken).join('\n'), /\/services\/worker must NOT have unevaluated properties/)
})

// One more judge where it is at hand. Debian 12 has version 1, which knows neither this format nor these options.
if (/^[2-9]/.test(runTool('docker-compose', ['version', '--short']).output)) {
  test('docker compose takes the file, and asks for every secret', () => {
    const name = path.join(project, 'deploy/compose.yaml')
    const { code, output } = runTool('docker-compose', ['--file', name, 'config', '--format', 'json'], SECRETS)
    assert.equal(code, 0, output)
    assert.deepEqual(
      Object.keys((JSON.parse(output) as ComposeFile).services).toSorted(),
      Object.keys(file.services).toSorted(),
    )
    for (const missing of Object.keys(SECRETS)) {
      const refused = runTool('docker-compose', ['--file', name, 'config', '--quiet'], { ...SECRETS, [missing]: '' })
      assert.notEqual(refused.code, 0, missing)
      assert.match(refused.output, new RegExp(missing))
    }
  })
}

test('two processes answer, one runs jobs, one migrates first; each is locked down and has time to drain', () => {
  assert.deepEqual(file.services['api-a'], file.services['api-b'])
  for (const name of OWN) {
    const service = file.services[name]
    assert.equal(service.read_only, true, name)
    assert.equal(service.stop_grace_period, '55s', name)
  }
})

test('every variable that has to be filled in is in the example, and the other way round', () => {
  const wanted = new Set([...read('deploy/compose.yaml').matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name))
  const example = [...read('deploy/.env.example').matchAll(/^(\w+)=/gm)].map(([, name]) => name)
  assert.deepEqual(
    [...wanted].filter((name) => !example.includes(name)),
    [],
  )
  const used = read('deploy/compose.yaml')
  assert.deepEqual(
    example.filter((name) => !used.includes(`\${${name}`)),
    [],
  )
  // Nothing that could be used as it stands: a secret that everybody knows is none.
  const filled = parse(read('deploy/.env.example').replaceAll('=', ': ')) as Record<string, string | null>
  for (const name of ['POSTGRES_PASSWORD', 'ATELIER_SECRET_KEY', 'ATELIER_TOKEN', 'STORAGE_KEY_SECRET']) {
    assert.equal(filled[name], null, name)
  }
})
