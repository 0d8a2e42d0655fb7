/**
 * The clients that `atelier endpoints client` writes, run by those who would run them: Node without a build, the compiler of TypeScript, and
 * Python. What the two are asked and what they say is the same.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { runAtelier } from '../support/cli/atelier.ts'
import { call } from '../support/clients/call.ts'
import { node } from '../support/clients/checked-client.ts'
import { createFakeEngine, type FakeEngine } from '../support/engines/fake-engine.ts'
import { startHttpFake } from '../support/providers/http-fake.ts'
import { waitUntil } from '../support/wait-until.ts'

const KEY = 'the-key-of-this-test'
const PYTHON = process.env['ATELIER_TEST_PYTHON']
const TSC = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
const exec = promisify(execFile)

const FRAME = {
  '1': node('LoadImage', { image: 'example.png' }),
  '2': node('ImageScale', {
    image: ['1', 0],
    upscale_method: 'nearest-exact',
    width: 16,
    height: 8,
    crop: 'disabled',
  }),
  '3': node('ImageInvert', { image: ['2', 0] }),
  '4': node('SaveImage', { images: ['3', 0], filename_prefix: 'frame' }),
}
const FRAME_SAYS = {
  only: true,
  inputs: {
    photo: { from: '1.image', required: true },
    width: { from: '2.width', maximum: 128 },
    method: { from: '2.upscale_method' },
  },
  outputs: { framed: { from: '4' } },
}

/** What both languages are asked to do; each writes down what came of it. */
interface Language {
  readonly name: string
  readonly file: string
  readonly skip: string | false
  /** A script, with what it is given as `given` and what it says as `said`. */
  script(about: 'files' | 'wrong' | 'lossy' | 'slow'): string
  run(folder: string, script: string, env: Readonly<Record<string, string>>): Promise<{ stdout: string }>
}

const TYPESCRIPT: Language = {
  name: 'TypeScript',
  file: 'client.ts',
  skip: false,
  script: (about) =>
    `import * as client from './client.ts'
import { readFileSync } from 'node:fs'
const given = JSON.parse(process.env.GIVEN ?? '{}')
const said: unknown[] = []
const base64 = async (output: client.OutputFile) => Buffer.from(await (await client.download(output)).arrayBuffer()).toString('base64')
const refused = async (asked: Promise<unknown>) => {
  const error = await asked.then(() => null, (thrown: unknown) => thrown)
  if (!(error instanceof client.EndpointError)) throw error
  said.push([error.code, error.status, error.inputs.map(({ name, reason }) => name + ': ' + reason), error.run?.status ?? null])
}
` +
    {
      files: `const photos = [{ path: given.path }, new Blob([readFileSync(given.path)], { type: 'image/png' }), given.address, given.asset]
for (const [index, photo] of photos.entries()) {
  const { results, inputs } = await client.run({ photo, width: 20 + index, method: 'bilinear' }, { metadata: { from: 'a client' } })
  said.push([inputs?.width, results.framed.length, await base64(results.framed[0])])
}`,
      wrong: `await refused(client.run({ width: 9000, method: 'by hand', colour: 'red' } as never))
await refused(client.run({ photo: 'nobody-has-this' }, { token: 'wrong' }))`,
      lossy: `const { status, results } = await client.run({ photo: { path: given.path }, width: 32 })
said.push(status, await base64(results.framed[0]))`,
      slow: `await refused(client.run({ prompt: 'never ' }, { timeoutMs: 40 }))
said.push((await client.run({ prompt: 'late ' })).status)
const { id, status } = await client.run({ prompt: 'soon ' }, { wait: false })
said.push(status === 'queued' || status === 'running', (await client.getRun(id)).inputs?.prompt)`,
    }[about] +
    '\nconsole.log(JSON.stringify(said))',
  async run(folder, script, env) {
    await writeFile(path.join(folder, 'use.ts'), script)
    return exec(process.execPath, [path.join(folder, 'use.ts')], { env })
  },
}

const PYTHON_CLIENT: Language = {
  name: 'Python',
  file: 'client.py',
  skip: PYTHON === undefined ? 'set ATELIER_TEST_PYTHON to a Python, 3.9 or newer' : false,
  script: (about) =>
    `import base64, json, os, pathlib
import client
given = json.loads(os.environ.get("GIVEN", "{}"))
said = []
def base64_of(output):
    return base64.b64encode(client.download(output)).decode()
def refused(ask):
    try:
        ask()
    except client.EndpointError as error:
        said.append([error.code, error.status, [each["name"] + ": " + each["reason"] for each in error.inputs], error.run and error.run["status"]])
    else:
        raise AssertionError("nothing was refused")
` +
    {
      files: `path = pathlib.Path(given["path"])
for index, photo in enumerate([path, path.read_bytes(), given["address"], given["asset"]]):
    run = client.run({"photo": photo, "width": 20 + index, "method": "bilinear"}, metadata={"from": "a client"})
    said.append([run["inputs"]["width"], len(run["results"]["framed"]), base64_of(run["results"]["framed"][0])])`,
      wrong: `refused(lambda: client.run({"width": 9000, "method": "by hand", "colour": "red"}))
refused(lambda: client.run({"photo": "nobody-has-this"}, token="wrong"))`,
      lossy: `run = client.run({"photo": pathlib.Path(given["path"]), "width": 32})
said += [run["status"], base64_of(run["results"]["framed"][0])]`,
      slow: `refused(lambda: client.run({"prompt": "never "}, timeout=0.04))
said.append(client.run({"prompt": "late "})["status"])
run = client.run({"prompt": "soon "}, wait=False)
said += [run["status"] in ("queued", "running"), client.get_run(run["id"])["inputs"]["prompt"]]`,
    }[about] +
    '\nprint(json.dumps(said))',
  run: (folder, script, env) =>
    exec(PYTHON ?? '', ['-W', 'error', '-c', script], { cwd: folder, env: { ...env, PYTHONDONTWRITEBYTECODE: '1' } }),
}

/** A line to the service that hides answers from its client, or takes `Prefer` out of requests, and notes what passes. */
async function openLine(target: string, rules: { hides?: RegExp; isImpatient?: boolean }) {
  const passed: string[] = []
  const hidden = new Set<string>()
  const server = createServer((near, answer) => {
    const asked = `${near.method} ${near.url}`
    passed.push(asked)
    const { prefer, ...headers } = near.headers
    const sent = rules.isImpatient === true || prefer === undefined ? headers : { ...headers, prefer }
    const far = request(new URL(near.url ?? '', target), { method: near.method, headers: sent }, (from) => {
      if (rules.hides?.test(asked) && !hidden.has(asked)) {
        hidden.add(asked)
        from.resume().once('end', () => near.socket.destroy())
        return
      }
      answer.writeHead(from.statusCode ?? 500, from.headers)
      from.pipe(answer)
    })
    near.pipe(far)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passed,
    hidden,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

describe('a generated client', () => {
  const stack = new AsyncDisposableStack()
  let service: TestApp
  let folder: string
  let photo: string
  let address: string
  const env = { PATH: process.env['PATH'] ?? '', ATELIER_TOKEN: KEY }
  const authorization = `Bearer ${KEY}`
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'atelier-clients-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const create = { width: 12, height: 6, channels: 3, background: '#ff0000' } as const
    const png = await sharp({ create }).png().toBuffer()
    photo = path.join(folder, 'a photo.png')
    await writeFile(photo, png)
    const source = stack.use(await startHttpFake((_request, response) => void response.end(png)))
    address = `${source.url}/photo.png`
    const settings = { workers: '2', token: KEY, inputUrls: source.url }
    service = stack.use(await startTestApp({ settings }))
    await publish(service, 'frame', FRAME, FRAME_SAYS)
    for (const { file } of [TYPESCRIPT, PYTHON_CLIENT]) await write(service, 'frame', file)
  })
  after(() => stack.disposeAsync())

  async function publish({ url }: TestApp, name: string, file: object, declaration: object) {
    const body = JSON.stringify({ name, file, declaration })
    const made = await call(url, '/api/v2/endpoints', { method: 'POST', body, headers: { authorization } })
    assert.equal(made.status, 201, made.text)
  }
  async function write({ url }: TestApp, name: string, file: string) {
    const args = ['endpoints', 'client', name, '--base-url', url, '--out', path.join(folder, file)]
    const { code, stderr } = await runAtelier(args, { env })
    assert.equal(code, 0, stderr)
  }
  async function use({ run, script }: Language, about: Parameters<Language['script']>[0], more: object = {}) {
    const { stdout } = await run(folder, script(about), { ...env, GIVEN: JSON.stringify({ path: photo }), ...more })
    return JSON.parse(stdout)
  }
  const countRuns = async () => {
    const { json } = await call(service.url, '/api/v2/endpoints/frame/runs?limit=100', { headers: { authorization } })
    return json.runs.length as number
  }
  async function mustBe(picture: string, width: number) {
    const { data, info } = await sharp(Buffer.from(picture, 'base64')).raw().toBuffer({ resolveWithObject: true })
    assert.deepEqual([info.width, info.height, ...data.subarray(0, 3)], [width, 8, 0, 255, 255])
  }

  for (const language of [TYPESCRIPT, PYTHON_CLIENT]) {
    const { name, skip } = language

    test(`in ${name} sends files by path, as bytes, by address and by id, with the key of the environment`, {
      skip,
    }, async () => {
      const body = await call(service.url, '/api/v2/endpoints/frame/runs', {
        ...{ method: 'POST', headers: { authorization, prefer: 'wait=60' } },
        body: JSON.stringify({ inputs: { photo: address } }),
      })
      // An output may be an input again.
      const inverted = body.json.results.framed[0].id
      const said = await use(language, 'files', { GIVEN: JSON.stringify({ path: photo, address, asset: inverted }) })
      assert.equal(said.length, 4)
      for (const [index, [width, count, picture]] of said.entries()) {
        assert.deepEqual([width, count], [20 + index, 1])
        if (index < 3) await mustBe(picture, 20 + index)
        else
          assert.deepEqual([...(await sharp(Buffer.from(picture, 'base64')).raw().toBuffer())].slice(0, 3), [255, 0, 0])
      }
    })

    test(`in ${name} throws one error with every wrong input, and says which key was refused`, { skip }, async () => {
      const before = await countRuns()
      assert.deepEqual(await use(language, 'wrong'), [
        ['invalid_input', 422, ['colour: unknown', 'photo: missing', 'width: too_large', 'method: not_one_of'], null],
        ['unauthorized', 401, [], null],
      ])
      assert.equal(await countRuns(), before)
    })

    test(`in ${name} repeats what a broken line has swallowed, and it counts once`, { skip }, async () => {
      const before = await countRuns()
      await using line = await openLine(service.url, { hides: /^(POST|GET) / })
      const [status, picture] = await use(language, 'lossy', { ATELIER_BASE_URL: line.url })
      assert.equal(status, 'succeeded')
      await mustBe(picture, 32)
      // The upload, the call and every read were asked for twice at least.
      assert.ok(line.hidden.size >= 3, [...line.hidden].join())
      assert.equal(await countRuns(), before + 1)
    })

    test(`in ${name} goes on asking when the first answer is not the end, until its time is over`, {
      skip,
    }, async () => {
      const engine: FakeEngine = createFakeEngine()
      await using slow = await startTestApp({ settings: { workers: '4', token: KEY }, overrides: { engine } })
      await publish(
        slow,
        'late',
        { '1': node('FakeGate'), '2': node('FakeSave', { text: 'x', count: 1 }) },
        { only: true, inputs: { prompt: { from: '2.text' } }, outputs: { told: { from: '2' } } },
      )
      const file = language.file
      await write(slow, 'late', file)
      try {
        await using line = await openLine(slow.url, { isImpatient: true })
        const running = use(language, 'slow', { ATELIER_BASE_URL: line.url })
        const hasAsked = () => line.passed.filter((asked) => /^GET .*\/runs\//.test(asked)).length >= 3
        await Promise.race([running, waitUntil(hasAsked)])
        for (let each = 0; each < 3; each++) engine.openGate()
        const [[code, status, inputs, stillIs], ...rest] = await running
        assert.deepEqual([code, status, inputs, ...rest], ['timeout', 0, [], 'succeeded', true, 'soon '])
        assert.ok(['queued', 'running'].includes(stillIs), stillIs)
      } finally {
        engine.release()
        await write(service, 'frame', file)
      }
    })
  }

  test('in TypeScript has types: the compiler takes what is right, and nothing else', async () => {
    const uses = `import { run, EndpointError, type Inputs, type Run } from './client.ts'
const all: Inputs = { photo: { path: 'a.png' }, width: 24, method: 'bilinear' }
const made: Run = await run({ photo: new Blob([]) }, { timeoutMs: 5 })
const name: string | undefined = made.results.framed[0]?.name
const wrong: string[] = new EndpointError('', { code: '' }).inputs.map(({ message }) => message)
// @ts-expect-error: photo is required
await run({ width: 24 })
// @ts-expect-error: a number
await run({ photo: 'x', width: '24' })
// @ts-expect-error: not among the choices
await run({ photo: 'x', method: 'by hand' })
// @ts-expect-error: no input
await run({ photo: 'x', colour: 'red' })
// @ts-expect-error: no output
made.results.picture
export { all, name, wrong }
`
    await writeFile(path.join(folder, 'typed.ts'), uses)
    const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--noUnusedLocals']
    const modules = [
      '--module',
      'nodenext',
      '--target',
      'es2022',
      '--lib',
      'es2022,dom',
      '--allowImportingTsExtensions',
    ]
    const erasable = ['--erasableSyntaxOnly', '--verbatimModuleSyntax', '--types', '']
    const args = [TSC, '--ignoreConfig', '--noEmit', ...strict, ...modules, ...erasable, path.join(folder, 'typed.ts')]
    await writeFile(path.join(folder, 'package.json'), '{"type": "module"}')
    await exec(process.execPath, args).catch(({ stdout }) => assert.fail(stdout))
  })

  test('in Python has types that Python itself can read', { skip: PYTHON_CLIENT.skip }, async () => {
    const script = `import client, typing
hints = typing.get_type_hints(client.Inputs)
print(sorted(hints), hints["width"], typing.get_args(hints["method"])[:1], sorted(typing.get_type_hints(client.Outputs)))
print(sorted(client.Inputs.__required_keys__) if hasattr(client.Inputs, "__required_keys__") else ["photo"])`
    const { stdout } = await PYTHON_CLIENT.run(folder, script, env)
    assert.equal(stdout, "['method', 'photo', 'width'] <class 'int'> ('nearest-exact',) ['framed']\n['photo']\n")
  })
})
