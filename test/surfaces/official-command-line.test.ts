/**
 * Everything that the official command line 1.23.0 asked in its walk through all commands, asked again of a whole service: each answer
 * holds what the client reads of it. `test/e2e/deployments/official-command-line.test.ts` makes the recording, with the real program.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { readRecording } from '../support/official-cli/recording.ts'
import { type Replay, startReplay } from '../support/official-cli/replay.ts'

const RECORDED = readRecording()

describe('what the official command line asked is answered in the same words', () => {
  let replay: Replay
  before(async () => {
    replay = await startReplay()
  })
  after(() => replay[Symbol.asyncDispose]())

  test('for all of its commands', async () => {
    for (const recorded of RECORDED) await replay.run(recorded)
  })

  test('and the recording holds each of them, with none of its keys and of the machine’s folders', () => {
    const commands = RECORDED.map(({ command }) => command)
    for (const name of [
      'build init',
      'build release create',
      'deploy up',
      'deploy run',
      'deploy promote',
      'build delete',
    ])
      assert.ok(
        commands.some((command) => command.startsWith(name)),
        name,
      )
    const text = JSON.stringify(RECORDED)
    assert.doesNotMatch(text, /atl_|\/tmp\/|\/home\/|127\.0\.0\.1/)
  })
})
