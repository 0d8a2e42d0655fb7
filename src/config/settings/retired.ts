/**
 * Settings of earlier versions. A start accepts them wherever they stand, and says in one warning what happens instead. Those that
 * became part of another setting still count, unless that setting is given itself.
 */
import type { SettingName } from './settings.ts'

interface Folded {
  readonly into: SettingName
  /** The member of the object that the setting holds now; null: the text is an item of its list. */
  readonly member: string | null
}

const inJwt = (member: string): Folded => ({ into: 'jwt', member })
const inRecycleAfter: Folded = { into: 'recycleAfter', member: null }
const byVariable = (name: string) => `it is read from the environment alone, as ${name}`

/** What happens now, or the setting that took it over. */
export const RETIRED: Readonly<Record<string, string | Folded>> = {
  maxBodies: 'the bodies of all requests together may use 256 MiB, or maxBody if that is more',
  maxBodiesPerCaller: 'the bodies of one account may use 128 MiB, or maxBody if that is more',
  maxStreams: '10,000 streams may be open at once, and where accounts have tiers, as many as their tier says',
  transferGc: 'the service decides',
  synchronous: 'SQLite always writes so that what was acknowledged survives a power cut',
  expiredGrace: 'an expired job stays readable for an hour',
  cancelGrace: 'a canceled job has 10 s to stop',
  urlLifetime: 'a signed content address is valid for 24 h',
  jwtKeys: inJwt('keys'),
  jwtIssuer: inJwt('issuer'),
  jwtAudience: inJwt('audience'),
  jwtAccountClaim: inJwt('accountClaim'),
  jwtScopesClaim: inJwt('scopesClaim'),
  jwtAlgorithms: 'every asymmetric algorithm of the keys is accepted',
  jwtClockSkew: 'the clock of an issuer may be 30 s off',
  stagingLabel: 'the label of staging addresses is stg',
  maxImagePixels: 'a picture may have 268,435,456 pixels (16384 × 16384)',
  maxOvertakes: 'a job is overtaken by at most 64 later ones whose weights are loaded',
  engineLostAfter: 'a ComfyUI server that does not answer for 15 s is lost',
  engineIdleAfter: 'a job that waits 30 s on a server that runs nothing goes to another one',
  engineQueueAfter: 'a job that waits 10 min behind the same prompt of a server goes to another one',
  weightQuota: 'uploads of weights are refused when the disk is nearly full',
  recycleJobs: inRecycleAfter,
  recycleMemory: inRecycleAfter,
  recycleAge: inRecycleAfter,
  comfyuiNodeDocs: 'help for nodes is read from the folder docs inside comfyuiFrontend, if there is one',
  comfyuiUserCss: 'the file user.css inside comfyuiFrontend is served, or the one that an account has saved',
  routerMaxBody: 'the largest input of a model is 100 MiB',
  routerMaxResult: 'the largest result of a provider is 1 GiB',
  routerMaxReplay: 'results of up to 256 MiB are replayed',
  routerMaxWaiting: 'an account may have 1,000 queued model calls',
  routerMaxWait: 'a queued model call waits for an hour at most',
  creditsPerUsd: 'one US dollar is 211 credits',
  webhookTimeout: 'one attempt to reach a webhook may take 10 s',
  webhookFirstRetry: 'the second attempt to reach a webhook comes after 5 s',
  webhookConcurrency: 'a webhook gets four messages at a time',
  logRequests: 'logLevel = debug writes a line for each request',
  otlpTracesEndpoint: byVariable('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'),
  otlpHeaders: byVariable('OTEL_EXPORTER_OTLP_HEADERS'),
  otlpProtocol: 'spans are sent as Protocol Buffers over HTTP',
  otlpTimeout: byVariable('OTEL_EXPORTER_OTLP_TIMEOUT'),
  otelServiceName: byVariable('OTEL_SERVICE_NAME'),
  otelResourceAttributes: byVariable('OTEL_RESOURCE_ATTRIBUTES'),
  otelTracesSampler: byVariable('OTEL_TRACES_SAMPLER'),
  otelTracesSamplerArg: byVariable('OTEL_TRACES_SAMPLER_ARG'),
  otelSdkDisabled: byVariable('OTEL_SDK_DISABLED'),
}

/** The retired names that became part of a setting. */
export function foldedInto(name: SettingName): readonly (readonly [string, Folded])[] {
  return Object.entries(RETIRED).flatMap(([old, now]) =>
    typeof now === 'object' && now.into === name ? [[old, now] as const] : [],
  )
}

/** One line for the operator. */
export function describeRetired(name: string, label: string): string {
  const now = RETIRED[name]
  if (typeof now === 'string') return `${name} (from ${label}) is not a setting any more and has no effect: ${now}`
  const place = now.member === null ? now.into : `"${now.member}" of ${now.into}`
  return `${name} (from ${label}) is now ${place}; it still counts, but write it there`
}
