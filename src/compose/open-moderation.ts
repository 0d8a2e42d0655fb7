/** The operator's hooks before runs and before outputs, with the addresses under which they read bytes. */

import { createHash } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import { newUuidV4 } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { readSecretText } from '../../lib/standard-webhooks.ts'
import type { Turns } from '../../lib/waiting/turns.ts'
import { openHttpHook } from '../adapters/hooks/http-hook.ts'
import type { HookConfig, ModerationSecrets } from '../config/blocks/moderation-config.ts'
import type { Config } from '../config/config.ts'
import type { Secrets } from '../config/secrets.ts'
import type { SigningKey } from '../domain/assets/signed-url.ts'
import { createOutputCheck, MAX_CHANGE_BYTES, type OutputCheck } from '../domain/jobs/outputs/check-outputs.ts'
import { withHiddenRuns } from '../domain/jobs/outputs/hidden-runs.ts'
import { type AskHook, createAskHook, type HookName, type HookObserver } from '../domain/moderation/ask-hook.ts'
import { type CheckLinks, createCheckLinks } from '../domain/moderation/check-links.ts'
import { createRunCheck, type RunCheck } from '../domain/moderation/check-run.ts'
import type { OpenedBlobs } from './storage/open-blobs.ts'

interface ModerationParts {
  readonly secrets: Pick<Secrets, 'moderation'>
  readonly signingKeys: readonly SigningKey[]
  /** Where this process listens, once it does, without the mount prefix. */
  readonly ownUrl: () => string | Promise<string>
  readonly observer: HookObserver
  readonly version: string
  readonly turns: Turns
  readonly clock: Clock
  readonly log: Log
  readonly opened: Pick<OpenedBlobs, 'blobs'>
}

export interface OpenedModeration extends AsyncDisposable {
  /** null: no hook is asked before runs. */
  readonly runCheck: RunCheck | null
  readonly outputCheck: OutputCheck
  /** Whether a hook is asked before runs, or before outputs. */
  readonly asksHooks: boolean
  readonly links: CheckLinks
}

const KIB = 1024
const ANSWER_BYTES: Readonly<Record<HookName, number>> = { before_run: 64 * KIB, before_outputs: MAX_CHANGE_BYTES }
// A hook may begin to read at the last moment of its time.
const READING_MS = 10_000

export function openModeration(config: Config, parts: ModerationParts): OpenedModeration {
  const { beforeRun, beforeOutputs, coversJobs } = config.moderation
  const opening = new AsyncDisposableStack()
  const { clock, log, turns, version, observer } = parts
  const links = createCheckLinks(parts.signingKeys, clock)
  const given = JSON.parse(parts.secrets.moderation?.reveal() ?? 'null') as ModerationSecrets | null

  function openHook(name: HookName, hook: HookConfig): AskHook {
    const secrets = (given?.[name] ?? []).map((text) => readSecretText(text)).filter((secret) => secret !== null)
    const { url, atOnce } = hook
    const http = openHttpHook({ url, atOnce, secrets, version, turns, maxAnswerBytes: ANSWER_BYTES[name] })
    const { call } = opening.use(http)
    log.info({ hook: name, host: new URL(url).host, ...toRules(hook), coversJobs }, 'a hook of moderation is asked')
    // A run has used its machine already; a caller can come again.
    const waitsForPlace = name === 'before_outputs'
    return createAskHook({ name, rules: hook, call, waitsForPlace, observer, clock, log })
  }

  const common = { links, baseUrl: createBaseUrl(config, parts.ownUrl), coversJobs, newId: newUuidV4 }
  const outputHook =
    beforeOutputs === null
      ? null
      : createOutputCheck({
          ...common,
          ask: openHook('before_outputs', beforeOutputs),
          linkMs: toLinkMs(beforeOutputs),
          identity: createHash('sha256').update(`before_outputs ${beforeOutputs.url}`).digest('base64url'),
        })
  return {
    asksHooks: beforeRun !== null || beforeOutputs !== null,
    runCheck:
      beforeRun === null
        ? null
        : createRunCheck({ ...common, ask: openHook('before_run', beforeRun), linkMs: toLinkMs(beforeRun) }),
    outputCheck: withHiddenRuns(outputHook, { blobs: parts.opened.blobs, newId: newUuidV4 }),
    links,
    [Symbol.asyncDispose]: () => opening.disposeAsync(),
  }
}

function toRules({ deadlineMs, onFailure, atOnce }: HookConfig) {
  return { deadlineMs, onFailure, atOnce }
}

function toLinkMs({ deadlineMs }: HookConfig): number {
  return deadlineMs + READING_MS
}

function createBaseUrl({ moderation, http }: Config, ownUrl: ModerationParts['ownUrl']): () => Promise<string> {
  if (moderation.serviceUrl !== null) return async () => moderation.serviceUrl as string
  return async () => `${http.publicUrl ?? (await ownUrl())}${http.mountPrefix}`
}
