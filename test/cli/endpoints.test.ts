/** `atelier endpoints` and `atelier run NAME` against a whole service: a publish and a run as processes of their own, the rest in this one. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { type CommandResult, runAtelier } from '../support/cli/atelier.ts'
import { runInProcess } from '../support/cli/in-process.ts'
import { CARD_YAML, card, stamp } from '../support/endpoints/card.ts'

const KEY = 'the-key-of-this-test'

describe('atelier endpoints', () => {
  let service: TestApp
  let folder: string
  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'atelier-endpoints-'))
    service = await startTestApp({ settings: { workers: '2', token: KEY } })
    write('card.json', card("It's one"))
    writeFileSync(path.join(folder, 'card.endpoint.yaml'), CARD_YAML)
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  function write(name: string, content: object) {
    writeFileSync(path.join(folder, name), JSON.stringify(content))
  }
  const surroundings = () => ({ cwd: folder, env: { ATELIER_BASE_URL: service.url, ATELIER_TOKEN: KEY } })
  const atelier = (...args: string[]): Promise<CommandResult> => runInProcess(args, surroundings())
  async function succeedOutside(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runAtelier(args, surroundings())
    assert.equal(code, 0, `${args.join(' ')}\n${stdout}${stderr}`)
    return stdout
  }
  async function succeed(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await atelier(...args)
    assert.equal(code, 0, `${args.join(' ')}\n${stdout}${stderr}`)
    return stdout
  }
  const json = async (...args: string[]) => JSON.parse(await succeed(...args, '--json'))

  test('from a file to a picture on disk: publish, compare, roll back, run with flags', async () => {
    const published = await succeedOutside('endpoints', 'publish', 'card', 'card.json')
    assert.match(published, /^card version 1 is published\naddress: http:\S+\/api\/v2\/endpoints\/card\/runs\n/)
    assert.match(published, /^headline +text +required +at most 20 characters +What the card says\.$/m)
    assert.match(published, /^align +choice +center +left \| center \| right/m)
    assert.ok(!published.includes(KEY))
    // Pasted as it is.
    const curl = published.slice(published.indexOf('curl '))
    const env = { PATH: process.env['PATH'], ATELIER_TOKEN: KEY }
    const answer = JSON.parse((await promisify(execFile)('bash', ['-c', curl], { env })).stdout)
    assert.deepEqual([answer.status, answer.inputs.headline], ['succeeded', "It's one"])

    write('card.json', card('two', { align: 'left' }))
    assert.match(
      await succeed('endpoints', 'publish', 'card', 'card.json', '--note', 'to the left'),
      /^card version 2 /,
    )
    const differences = await succeed('endpoints', 'diff', 'card', '1', '2')
    assert.equal(differences, 'changed: align has another default\nchanged: the workflow has changed\n')
    assert.match(await succeed('endpoints', 'versions', 'card'), /^2 +current .* to the left\n1 +-/m)
    assert.equal(await succeed('endpoints', 'rollback', 'card'), 'card runs version 1; before it was 2\n')
    assert.equal(await succeed('endpoints', 'alias', 'card', 'stable', 'latest'), 'card@stable is version 2\n')

    const file = (
      await succeedOutside('run', 'card', '--headline', 'Good morning', '--width=128', '--no-outline', '--out', 'made')
    ).trim()
    assert.equal(path.dirname(file), path.join(folder, 'made'))
    const { width, height } = await sharp(file).metadata()
    assert.deepEqual([width, height], [128, 32])
    const again = await json('run', 'card@stable', '--headline', 'x', '--outline', '--align', 'right')
    assert.deepEqual(again.endpoint, { name: 'card', version: 2 })
    assert.deepEqual(again.inputs, { headline: 'x', width: 64, align: 'right', outline: true })
    assert.equal((await json('run', 'card', '--version', '2', '-i', 'headline=x')).endpoint.version, 2)
  })

  test('what would break callers is told, and published when it is meant', async () => {
    await succeed('endpoints', 'publish', 'strict', 'card.json')
    writeFileSync(path.join(folder, 'narrow.yaml'), CARD_YAML.replace('max_length: 20', 'max_length: 10'))
    const refused = await atelier('endpoints', 'publish', 'strict', 'card.json', '--declare', 'narrow.yaml')
    assert.equal(refused.code, 1)
    assert.equal(
      refused.stderr,
      'breaking_change: this would break those who call it; publish it all the same with --breaking\n' +
        '  headline: maxLength was 20 and is 10\n',
    )
    const args = ['endpoints', 'publish', 'strict', 'card.json', '--declare', 'narrow.yaml', '--breaking']
    assert.match(await succeed(...args), /^breaks callers: headline: maxLength was 20 and is 10$/m)
  })

  test('a run tells every wrong input, and a name that nobody has', async () => {
    await succeed('endpoints', 'publish', 'wrong', 'card.json')
    const refused = await atelier('run', 'wrong', '--headlin', 'x', '--width', '4096', '--align', 'up')
    assert.equal(refused.code, 1)
    assert.deepEqual(refused.stderr.trim().split('\n'), [
      'invalid_input: 4 inputs are wrong',
      '  headlin is no input of this endpoint; did you mean headline?',
      '  headline is required',
      '  width must be at most 512',
      '  align must be one of left, center, right',
    ])
    const nobody = await atelier('run', 'nobody')
    assert.deepEqual([nobody.code, nobody.stderr], [1, 'not_found: there is no endpoint with this name\n'])
    for (const args of [
      ['run', 'wrong', 'x'],
      ['run', 'wrong', '--local'],
      ['run', 'wrong', '--width', '1', '--width', '2'],
    ])
      assert.equal((await atelier(...args)).code, 2, args.join(' '))
    const unknown = await atelier('run', 'card.json', '--ouy', 'x')
    assert.deepEqual([unknown.code, unknown.stderr], [2, "atelier: unknown option '--ouy' (Did you mean --out?)\n"])
  })

  test('a file of this machine is uploaded for an input that takes one', async () => {
    write('stamp.json', stamp())
    const png = await sharp({ create: { width: 24, height: 16, channels: 3, background: '#fff' } })
      .png()
      .toBuffer()
    writeFileSync(path.join(folder, 'cat.png'), png)
    const { version } = await json('endpoints', 'publish', 'stamp', 'stamp.json')
    const [{ name, kind }] = version.inputs
    assert.equal(kind, 'image')
    const [file] = (await json('run', 'stamp', `--${name}`, './cat.png', '--out', 'stamped')).files
    assert.equal((await sharp(file).metadata()).width, 24)
    const result = await atelier('run', 'stamp', '-i', `${name}=@none.png`)
    assert.deepEqual([result.code, /cannot read none\.png/.test(result.stderr)], [2, true])
  })

  test('one job for each row of a table; and none is waited for without need', async () => {
    await succeed('endpoints', 'publish', 'rows', 'card.json')
    writeFileSync(path.join(folder, 'rows.csv'), 'headline,width\n"a, b",80\nc,\n')
    const result = (await succeed('run', 'rows', '--batch', 'rows.csv', '--out', 'rows')).trim()
    assert.deepEqual(readdirSync(path.join(folder, 'rows')), [path.basename(result)])
    assert.match(await succeed('run', 'rows', '--headline', 'x', '--no-wait'), /^[0-9a-f-]{36}\n$/)
  })

  test('a picture that carries a workflow is published like the workflow', async () => {
    await succeed('endpoints', 'publish', 'first', 'card.json')
    const picture = (await succeed('run', 'first', '--headline', 'carried', '--out', 'carried')).trim()
    const { version } = await json('endpoints', 'publish', 'second', picture, '--title', 'From a picture')
    assert.ok(version.inputs.some((input: { name: string; example: string }) => input.name === 'headline'))
    assert.match(await succeed('endpoints', 'list'), /^second +ready +1 .*From a picture$/m)
  })

  test('what was exported is the same version wherever it is imported', async () => {
    const { version } = await json('endpoints', 'publish', 'moved', 'card.json', '--note', 'the first')
    const file = (await succeed('endpoints', 'export', 'moved', '--out', 'moved.json')).trim()
    assert.equal(JSON.parse(readFileSync(file, 'utf8')).name, 'moved')
    const copy = await json('endpoints', 'import', 'moved.json', '--name', 'copy')
    assert.deepEqual([copy.endpoint.name, copy.endpoint.title, copy.version.note], ['copy', 'A card', 'the first'])
    const content = ({ inputs, outputs, workflow }: Record<string, unknown>) => ({ inputs, outputs, workflow })
    assert.deepEqual(content(copy.version), content(version))
    assert.equal((await atelier('endpoints', 'import', 'card.json')).code, 2)
  })

  test('limits are set, told with what counts for them, and taken away; usage is told in lines', async () => {
    await succeed('endpoints', 'publish', 'bounded', 'card.json')
    const told = await succeed(
      'endpoints',
      'limits',
      'bounded',
      '--in-flight',
      '2',
      '--runs',
      '1/day,9/month',
      '--spend',
      '5/ever',
    )
    assert.equal(told, '0 of 2 runs at a time\n0 of 1 runs a day\n0 of 9 runs a month\n$0.00 of $5.00 in all\n')
    await succeed('run', 'bounded', '--headline', 'x')
    assert.match(await succeed('endpoints', 'limits', 'bounded'), /^0 of 2 runs at a time\n1 of 1 runs a day\n/)
    const refused = await atelier('run', 'bounded', '--headline', 'x')
    assert.match(refused.stderr, /the endpoint bounded takes 1 runs in one day; the next one begins at /)
    assert.match(await succeed('endpoints', 'usage', 'bounded', '--by', 'version'), /^1 +1 +1 +0 +0 +0 /m)
    assert.match(
      await succeed('endpoints', 'limits', 'bounded', '--runs', 'none/day'),
      /^0 of 2 .*\n1 of 9 runs a month\n/,
    )
    assert.equal(await succeed('endpoints', 'limits', 'bounded', '--none'), 'it has no limits\n')
    for (const wrong of [
      ['--runs', '5/week'],
      ['--in-flight', '0'],
      ['--none', '--spend', '1/day'],
    ])
      assert.equal((await atelier('endpoints', 'limits', 'bounded', ...wrong)).code, 2, wrong.join(' '))
  })

  test('is opened to other accounts, and closed again', async () => {
    await succeed('endpoints', 'publish', 'open', 'card.json')
    const callers = (...more: string[]) => succeed('endpoints', 'callers', 'open', ...more)
    assert.equal(await callers(), 'no other account may call open\n')
    assert.equal(await callers('acme', 'globex'), 'acme, globex may call it, as OWNER/open\n')
    assert.equal(await callers('--everyone'), 'every account may call it, as OWNER/open\n')
    assert.equal(await callers('--nobody'), 'no other account may call open\n')
    assert.equal((await atelier('endpoints', 'callers', 'open', 'acme', '--everyone')).code, 2)
    assert.match(await succeed('run', 'local/open', '--headline', 'x', '--no-wait'), /^[0-9a-f-]{36}\n$/)
  })

  test('is stopped, started and removed', async () => {
    await succeed('endpoints', 'publish', 'brief', 'card.json', '--no-tool')
    assert.equal(await succeed('endpoints', 'stop', 'brief'), 'brief is stopped\n')
    assert.match((await atelier('run', 'brief', '--headline', 'x')).stderr, /^endpoint_stopped: /)
    assert.equal(await succeed('endpoints', 'start', 'brief'), 'brief is ready\n')
    assert.match(await succeed('endpoints', 'show', 'brief'), /^agents +do not see it$/m)
    assert.equal(await succeed('endpoints', 'delete', 'brief'), 'brief is gone\n')
    assert.equal((await atelier('endpoints', 'show', 'brief')).code, 1)
  })

  test('a preview says what a file would have, and what is missing', async () => {
    write('tomorrow.json', { ...card('x'), '9': { class_type: 'ClassOfTomorrow', inputs: { images: ['2', 0] } } })
    const said = await succeed('endpoints', 'preview', 'tomorrow.json')
    assert.match(said, /^headline +text/m)
    assert.match(said, /could be inputs, if a declaration says so: .*align/)
    assert.match(said, /^missing: no engine has the class ClassOfTomorrow$/m)
    assert.match(await succeed('endpoints', 'publish', 'tomorrow', 'tomorrow.json'), /It cannot run until/)
  })

  test('a declaration that is no YAML, or two of them, and a file that is not there are mistakes in the call', async () => {
    writeFileSync(path.join(folder, 'bad.yaml'), 'inputs: [')
    const bad = await atelier('endpoints', 'preview', 'card.json', '--declare', 'bad.yaml')
    assert.deepEqual([bad.code, /^atelier: bad\.yaml is not valid YAML: /.test(bad.stderr)], [2, true])
    writeFileSync(path.join(folder, 'tomorrow.json.yaml'), 'title: one')
    writeFileSync(path.join(folder, 'tomorrow.endpoint.yml'), 'title: two')
    const two = await atelier('endpoints', 'preview', 'tomorrow.json')
    assert.deepEqual([two.code, /name one with --declare/.test(two.stderr)], [2, true])
    assert.equal((await atelier('endpoints', 'preview', 'none.json')).code, 2)
  })

  test('a link is made with its bounds, listed with what was used of it, and revoked', async () => {
    await succeed('endpoints', 'publish', 'linked', 'card.json')
    const flags = ['--runs', '100', '--spend', '5usd', '--expires', '7d', '--referrer', 'example.com', '*.example.org']
    const made = await succeed('endpoints', 'share', 'linked', ...flags, '--note', 'on the blog')
    const [url = '', line = '', , embed = ''] = made.split('\n')
    assert.match(url, /\/share\/[A-Za-z0-9_-]{43}$/)
    assert.match(line, /^[0-9a-f-]{36}: 100 runs, \$5\.00, until \d{4}-/)
    assert.ok(embed.startsWith(`<iframe src="${url}"`))
    const about = await fetch(`${url}/endpoint`)
    assert.deepEqual([about.status, ((await about.json()) as { title: string }).title], [200, 'A card'])
    const { shares } = await json('endpoints', 'shares', 'linked')
    assert.deepEqual(shares[0].referrers, ['example.com', '*.example.org'])
    assert.match(await succeed('endpoints', 'shares', 'linked'), /active +0 of 100 +\$0\.00 of \$5\.00 .* on the blog/)
    await succeed('endpoints', 'unshare', 'linked', shares[0].id)
    assert.equal((await fetch(`${url}/endpoint`)).status, 404)
    const refused = await atelier('endpoints', 'share', 'linked', '--expires', '7d')
    assert.notEqual(refused.code, 0)
    assert.match(refused.stderr, /--runs/)
  })
})
