/** The catalogue follows its files however they are saved, and a catalogue that cannot be used is said in one line. */
import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Log, silentLog } from '../../../lib/log.ts'
import { startRouter } from '../../support/app/start-router.ts'
import { runAtelier } from '../../support/cli/atelier.ts'
import { runInProcess } from '../../support/cli/in-process.ts'
import { waitUntil } from '../../support/wait-until.ts'

async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-catalog-'))
  try {
    await body(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const echo = (name: string, description: string) =>
  JSON.stringify({
    id: `sandbox/${name}`,
    price: { kind: 'free' },
    adapter: { behaviour: 'echo' },
    input: { schema: { type: 'object', description } },
  })

interface Line {
  readonly fields: { readonly changed?: readonly string[]; readonly models?: number; readonly problems?: object[] }
  readonly message: string
}

function recordingLog(): { readonly lines: Line[]; readonly log: Log } {
  const lines: Line[] = []
  const note = (fields: object, message: string) => void lines.push({ fields, message })
  const log: Log = { ...silentLog, info: note, warn: note, error: note, child: () => log }
  return { lines, log }
}

test('every way to save a file is noticed, again and again, and the log names what was read', async () => {
  await withFolder(async (folder) => {
    const provider = join(folder, 'sandbox')
    const file = join(provider, 'mine.json')
    await mkdir(provider)
    await writeFile(file, echo('mine', 'version 0'))
    const { lines, log } = recordingLog()
    await using app = await startRouter({ settings: { catalogs: folder }, log })
    const describedAs = async () => JSON.stringify((await app.client.call('/v2/models/sandbox/mine/openapi.json')).json)
    // Each in one turn of this process, which is that of the service too: it never sees half of what was done.
    const ways: ((text: string) => void)[] = [
      // In place; beside it and renamed over it; the old one moved away first; the whole folder exchanged; a link turned.
      (text) => writeFileSync(file, text),
      (text) => {
        writeFileSync(join(provider, '.mine.swp'), text)
        renameSync(join(provider, '.mine.swp'), file)
      },
      (text) => {
        renameSync(file, `${file}~`)
        writeFileSync(file, text)
        rmSync(`${file}~`)
      },
      (text) => {
        mkdirSync(join(folder, '.next'))
        writeFileSync(join(folder, '.next', 'mine.json'), text)
        renameSync(provider, join(folder, '.before'))
        renameSync(join(folder, '.next'), provider)
        rmSync(join(folder, '.before'), { recursive: true })
      },
      (text) => {
        const target = join(folder, `target-${text.length}.txt`)
        writeFileSync(target, text)
        symlinkSync(target, join(provider, '.link'))
        renameSync(join(provider, '.link'), file)
      },
      // Of the same length, and with the times of long ago.
      (text) => {
        rmSync(file)
        writeFileSync(file, text)
        utimesSync(file, 1, 1)
      },
      (text) => writeFileSync(file, text),
    ]
    for (const [index, save] of [...ways, ...ways.slice(1, 2)].entries()) {
      save(echo('mine', `version ${index + 1}`))
      await waitUntil(
        async () => (await describedAs()).includes(`version ${index + 1}`),
        () => `save ${index + 1} is noticed`,
      )
    }
    const reloads = lines.filter(({ message }) => message === 'the model catalogue was reloaded')
    assert.equal(reloads.length, 8)
    for (const { fields } of reloads) assert.deepEqual(fields.changed, [file])
  })
})

test('what is wrong is said once, and a folder that comes back is read again', async () => {
  await withFolder(async (folder) => {
    const [catalog, away] = [join(folder, 'catalog'), join(folder, 'away')]
    await mkdir(join(catalog, 'sandbox'), { recursive: true })
    await writeFile(join(catalog, 'sandbox', 'mine.json'), echo('mine', 'version 0'))
    const { lines, log } = recordingLog()
    await using app = await startRouter({ settings: { catalogs: catalog }, log })
    const refusals = () => lines.filter(({ message }) => message.includes('was not reloaded'))
    const until = (isSo: () => boolean | Promise<boolean>) => waitUntil(isSo, () => JSON.stringify(lines))
    await rename(catalog, away)
    await until(() => refusals().length === 1)
    assert.match(JSON.stringify(refusals()[0]), /there is no such folder/)
    assert.equal((await app.client.call('/v2/models/sandbox/mine')).status, 200)
    await writeFile(join(away, 'sandbox', 'second.json'), echo('second', 'new'))
    await rename(away, catalog)
    await until(async () => (await app.client.call('/v2/models/sandbox/second')).status === 200)
    assert.equal(refusals().length, 1)
  })
})

test('a catalogue or a providers file that cannot be used ends the start with one line and exit code 2', async () => {
  await withFolder(async (folder) => {
    const catalog = join(folder, 'catalog')
    await mkdir(join(catalog, 'sandbox'), { recursive: true })
    const broken = join(catalog, 'sandbox', 'broken.json')
    const providers = join(folder, 'providers.json')
    const refusedWith = async (flag: string[], env: Record<string, string>, words: RegExp) => {
      const flags = ['--port', '0', '--workers', '0', '--data-dir', join(folder, 'data'), ...flag]
      const { code, stdout, stderr } = await runAtelier(['serve', ...flags], { env })
      assert.deepEqual([code, stdout], [2, ''], stderr)
      const said = stderr.split('\n').filter((line) => line.startsWith('atelier: '))
      assert.equal(said.length, 1, stderr)
      assert.match(said[0] ?? '', words)
      assert.doesNotMatch(stderr, /^\s+at |hush/m)
    }
    const faultyCatalog = (words: RegExp) => refusedWith(['--catalogs', catalog], {}, words)
    const faultyProviders = async (text: string, words: RegExp) => {
      await writeFile(providers, text)
      await refusedWith([], { ATELIER_PROVIDERS: providers }, words)
    }
    await writeFile(broken, '{"id": "sandbox/broken", ')
    await faultyCatalog(/^atelier: cannot start: .*sandbox\/broken\.json: is no JSON/)
    await writeFile(broken, '{"id": "sandbox/broken", "price": {}, "surprise": 1}')
    await faultyCatalog(/sandbox\/broken\.json: .*\(and \d+ more: see `atelier models lint`\)$/)
    await rm(broken)
    await mkdir(broken)
    await faultyCatalog(/catalog: sandbox\/broken\.json cannot be read \(EISDIR\)$/)
    await faultyProviders('{"bfl": {"key": "hush-hush", "base_url": 7}}', /providers: \/bfl\/base_url must be string/)
    await faultyProviders('{"bfl": {"key": hush-hush}}', /providers.* (is not valid|are no) JSON/)
  })
})

test('lint refuses a workflow model that could never run', async () => {
  await withFolder(async (folder) => {
    await mkdir(join(folder, 'local'))
    const good = {
      '1': { class_type: 'LoadImage', inputs: { image: 'picture.png' } },
      '2': {
        class_type: 'ImageScale',
        inputs: { image: ['1', 0], upscale_method: 'lanczos', width: 8, crop: 'disabled' },
      },
      '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'x' } },
    }
    const put = async (name: string, workflow: object, fields: object = { height: '2.height' }) => {
      const adapter = { workflow, fields, files: { image: 'picture.png' } }
      const input = { schema: { type: 'object', properties: { height: { type: 'integer' } } }, example: { height: 9 } }
      const model = { id: `local/${name}`, price: { kind: 'free' }, input, adapter }
      await writeFile(join(folder, 'local', `${name}.json`), JSON.stringify(model))
    }
    const lint = () => runInProcess(['models', 'lint', folder], { cwd: folder })
    await put('good', good)
    const fine = await lint()
    assert.deepEqual([fine.code, fine.stderr], [0, ''])
    const cases: [object, RegExp, object?][] = [
      [{ ...good, '2': { inputs: good['2'].inputs } }, /adapter\.workflow\.2\.class_type must be a text/],
      [{ ...good, '2': { class_type: '', inputs: good['2'].inputs } }, /adapter\.workflow\.2\.class_type/],
      [{ ...good, '3': { class_type: 'SaveImage' } }, /adapter\.workflow\.3\.inputs must be an object/],
      [{ ...good, '3': 7 }, /adapter\.workflow\.3 must be an object/],
      [
        { ...good, '3': { class_type: 'SaveImage', inputs: { images: ['9', 0], filename_prefix: 'x' } } },
        /node 3\b.*9/,
      ],
      [{ ...good, '2': { class_type: 'ImageScael', inputs: good['2'].inputs } }, /ImageScael/],
      // Nobody fills in the height.
      [good, /node 2 .*height/, {}],
      [{ ...good, '1': { class_type: 'LoadImage', inputs: { image: 'other.png' } } }, /node 1 .*other\.png/],
      [{ '1': good['1'] }, /no outputs/, {}],
    ]
    for (const [index, [workflow, , fields]] of cases.entries()) await put(`bad-${index}`, workflow, fields)
    const { code, stderr } = await lint()
    assert.equal(code, 1, stderr)
    const lines = stderr.trimEnd().split('\n')
    for (const [index, [, words]] of cases.entries()) {
      const said = lines.filter((line) => line.startsWith(`local/bad-${index}.json: `))
      assert.match(said.join('\n'), words)
    }
    assert.ok(
      lines.every((line) => line.startsWith('local/bad-')),
      stderr,
    )
  })
})
