/**
 * By which way the printed lines of a server reach its runs: from the server's own record and over the socket; of a server with
 * neither, from its process, if we started it.
 */
import type { Clock } from '../../../../../lib/clock.ts'
import type { Log } from '../../../../../lib/log.ts'
import type { ComfyApi } from './comfy-api.ts'
import type { MessageDispatcher } from './message-dispatcher.ts'
import { createPrintedLines, type PrintedLines } from './printed-lines.ts'

export interface LineSource {
  readonly printed: PrintedLines
  /** Asks the server to pass its lines on to the socket of this client. */
  subscribe(clientId: string): void
  /** Resolves when it is known by which way the lines come. */
  settled(): Promise<void>
  /** Takes a line of the process that we started. */
  hearProcess(line: string): void
  /** How long after the end of a run its last lines may still arrive. */
  lagMs(): number
}

interface LineSourceDeps {
  readonly api: Pick<ComfyApi, 'printed' | 'subscribeLogs'>
  readonly dispatcher: Pick<MessageDispatcher, 'receiveLog' | 'attached'>
  readonly clock: Clock
  readonly log: Log
  /** Whether we started the server, so that its process can be listened to. */
  readonly isOurs: boolean
  onPrinted(text: string): void
}

// The lines of a process come through a pipe of their own and may arrive after the end of its run.
const PIPE_LAG_MS = 50

export function createLineSource({ api, dispatcher, clock, log, isOurs, onPrinted }: LineSourceDeps): LineSource {
  const printed = createPrintedLines({ api, clock, tell })
  let hearsProcess = false

  function tell(text: string, at: number | null): void {
    dispatcher.receiveLog(text, at)
    onPrinted(text)
  }
  let subscribing: Promise<void> = Promise.resolve()

  async function subscribe(clientId: string): Promise<void> {
    try {
      const isSubscribed = await api.subscribeLogs(clientId)
      // While something runs, lines that were printed in the meantime belong to it.
      if (dispatcher.attached() === 0) await printed.begin()
      hearsProcess = isOurs && !isSubscribed && !printed.hasRecord()
    } catch (error) {
      log.debug({ err: error }, 'the printed lines of an engine cannot be read')
    }
  }

  return {
    printed,
    subscribe(clientId) {
      subscribing = subscribe(clientId)
    },
    settled: () => subscribing,
    hearProcess(line) {
      if (hearsProcess) dispatcher.receiveLog(line)
    },
    lagMs: () => (hearsProcess ? PIPE_LAG_MS : 0),
  }
}
