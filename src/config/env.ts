/** Every environment variable that Atelier reads, once. No other place spells one. */
export const ENV = {
  kind: 'ATELIER_KIND',
  host: 'ATELIER_HOST',
  port: 'ATELIER_PORT',
  token: 'ATELIER_TOKEN',
  allowInsecureBind: 'ATELIER_ALLOW_INSECURE_BIND',
  allowedHosts: 'ATELIER_ALLOWED_HOSTS',
  corsOrigins: 'ATELIER_CORS_ORIGINS',
  publicUrl: 'ATELIER_PUBLIC_URL',
  mountPrefix: 'ATELIER_MOUNT_PREFIX',
  trustedProxies: 'ATELIER_TRUSTED_PROXIES',
  maxBody: 'ATELIER_MAX_BODY',
  maxStreams: 'ATELIER_MAX_STREAMS',
  brand: 'ATELIER_BRAND',
  dataDir: 'ATELIER_DATA_DIR',
  synchronous: 'ATELIER_SYNCHRONOUS',
  secretKey: 'ATELIER_SECRET_KEY',
  workers: 'ATELIER_WORKERS',
  maxQueue: 'ATELIER_MAX_QUEUE',
  retention: 'ATELIER_RETENTION',
  expiredGrace: 'ATELIER_EXPIRED_GRACE',
  maxRunTime: 'ATELIER_MAX_RUN_TIME',
  cancelGrace: 'ATELIER_CANCEL_GRACE',
  drainTimeout: 'ATELIER_DRAIN_TIMEOUT',
  previewOutputs: 'ATELIER_PREVIEW_OUTPUTS',
  maxUpload: 'ATELIER_MAX_UPLOAD',
  assetRetention: 'ATELIER_ASSET_RETENTION',
  modelsDir: 'ATELIER_MODELS_DIR',
  engineThreads: 'ATELIER_ENGINE_THREADS',
  engineMemory: 'ATELIER_ENGINE_MEMORY',
  maxImagePixels: 'ATELIER_MAX_IMAGE_PIXELS',
  nodes: 'ATELIER_NODES',
  nodeTimeout: 'ATELIER_NODE_TIMEOUT',
  adminToken: 'ATELIER_ADMIN_TOKEN',
  signingKeys: 'ATELIER_SIGNING_KEYS',
  urlLifetime: 'ATELIER_URL_LIFETIME',
  tiers: 'ATELIER_TIERS',
  prices: 'ATELIER_PRICES',
  jwtKeys: 'ATELIER_JWT_KEYS',
  jwtIssuer: 'ATELIER_JWT_ISSUER',
  jwtAudience: 'ATELIER_JWT_AUDIENCE',
  jwtAlgorithms: 'ATELIER_JWT_ALGORITHMS',
  jwtAccountClaim: 'ATELIER_JWT_ACCOUNT_CLAIM',
  jwtScopesClaim: 'ATELIER_JWT_SCOPES_CLAIM',
  jwtClockSkew: 'ATELIER_JWT_CLOCK_SKEW',
  deploymentsDomain: 'ATELIER_DEPLOYMENTS_DOMAIN',
  stagingLabel: 'ATELIER_STAGING_LABEL',
  poolHook: 'ATELIER_POOL_HOOK',
  poolIdle: 'ATELIER_POOL_IDLE',
  comfyui: 'ATELIER_COMFYUI',
  comfyuiLaunch: 'ATELIER_COMFYUI_LAUNCH',
  comfyuiCount: 'ATELIER_COMFYUI_COUNT',
  comfyuiConcurrency: 'ATELIER_COMFYUI_CONCURRENCY',
  embedded: 'ATELIER_EMBEDDED',
  maxOvertakes: 'ATELIER_MAX_OVERTAKES',
  engineWait: 'ATELIER_ENGINE_WAIT',
  engineLostAfter: 'ATELIER_ENGINE_LOST_AFTER',
  engineStallAfter: 'ATELIER_ENGINE_STALL_AFTER',
  recycleJobs: 'ATELIER_RECYCLE_JOBS',
  recycleMemory: 'ATELIER_RECYCLE_MEMORY',
  recycleAge: 'ATELIER_RECYCLE_AGE',
  catalogs: 'ATELIER_CATALOGS',
  providers: 'ATELIER_PROVIDERS',
  routerDeadline: 'ATELIER_ROUTER_DEADLINE',
  routerMaxBody: 'ATELIER_ROUTER_MAX_BODY',
  routerMaxResult: 'ATELIER_ROUTER_MAX_RESULT',
  routerMaxReplay: 'ATELIER_ROUTER_MAX_REPLAY',
  routerMaxCalls: 'ATELIER_ROUTER_MAX_CALLS',
  routerSpendCeiling: 'ATELIER_ROUTER_SPEND_CEILING',
  routerRate: 'ATELIER_ROUTER_RATE',
  routerMaxWaiting: 'ATELIER_ROUTER_MAX_WAITING',
  routerMaxWait: 'ATELIER_ROUTER_MAX_WAIT',
  creditsPerUsd: 'ATELIER_CREDITS_PER_USD',
  logLevel: 'ATELIER_LOG_LEVEL',
  logRequests: 'ATELIER_LOG_REQUESTS',
} as const

/** Variables that are not settings of the service: where the config file lies, and what `atelier run` talks to. */
export const OTHER_ENV = {
  configFile: 'ATELIER_CONFIG',
  baseUrl: 'ATELIER_BASE_URL',
} as const

export type SettingName = keyof typeof ENV

export type Environment = Readonly<Record<string, string | undefined>>

const KNOWN: ReadonlySet<string> = new Set([...Object.values(ENV), ...Object.values(OTHER_ENV)])

/** Names that look like ours and are not: most likely a typing mistake that would otherwise go unseen. */
export function findUnknownNames(env: Environment): string[] {
  return Object.keys(env).filter((name) => name.startsWith('ATELIER_') && !KNOWN.has(name))
}
