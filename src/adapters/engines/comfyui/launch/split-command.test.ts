import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandError, splitCommand, withPort } from './split-command.ts'

test('words are separated by blanks and kept together by quotes', () => {
  assert.deepEqual(splitCommand('python main.py --port {port}'), ['python', 'main.py', '--port', '{port}'])
  assert.deepEqual(splitCommand(`"/my folder/python"  'a b'c"d e" --listen=127.0.0.1:{port}`), [
    '/my folder/python',
    'a bcd e',
    '--listen=127.0.0.1:{port}',
  ])
  assert.deepEqual(splitCommand(`run "" {port}`), ['run', '', '{port}'])
  assert.deepEqual(splitCommand(String.raw`C:\\py\ thon.exe 'a\b' {port}`), [
    String.raw`C:\py thon.exe`,
    String.raw`a\b`,
    '{port}',
  ])
})

test('what a shell would act on is only text', () => {
  assert.deepEqual(splitCommand('run {port}; rm -rf $HOME && `x` > y | z *'), [
    'run',
    '{port};',
    'rm',
    '-rf',
    '$HOME',
    '&&',
    '`x`',
    '>',
    'y',
    '|',
    'z',
    '*',
  ])
})

test('a command that cannot be run is refused with the reason', () => {
  for (const [command, reason] of [
    ['', /empty/],
    ['   ', /empty/],
    ['"" {port}', /empty/],
    ['python "main.py {port}', /unclosed/],
    ['python {port} \\', /backslash/],
    ['python main.py', /\{port\}/],
  ] as const) {
    assert.throws(
      () => splitCommand(command),
      (error) => error instanceof CommandError && reason.test(error.message),
    )
  }
})

test('the port goes wherever it is asked for', () => {
  assert.deepEqual(withPort(['a{port}', '{port}:{port}', 'b'], 7), ['a7', '7:7', 'b'])
})
