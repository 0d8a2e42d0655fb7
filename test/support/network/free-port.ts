/**
 * A port for a program that is told its port before it starts, and may start again at the same one. It lies below the range from
 * which systems hand out ports by themselves, and no other process of the tests is given it while this one lives: the UDP port of the
 * same number, which nobody needs, is held until then.
 */
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

const FIRST = 20_000
const END = 32_000
const HOST = '127.0.0.1'

export async function findFreePort(): Promise<number> {
  while (true) {
    const port = randomInt(FIRST, END)
    if ((await claim(port)) && (await isFree(port))) return port
  }
}

/** Of two that want the same one at the same time the system lets one have it, and takes it back when that one ends, however it does. */
function claim(port: number): Promise<boolean> {
  const held = createSocket('udp4')
  return new Promise((resolve) => {
    held.once('error', () => resolve(false))
    held.bind({ port, address: HOST, exclusive: true }, () => {
      held.unref()
      resolve(true)
    })
  })
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  const isListening = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, HOST, () => resolve(true))
  })
  if (isListening) await new Promise((resolve) => probe.close(resolve))
  return isListening
}
