// The health check of the image: 0 when the process inside answers, else 1.
const port = process.env.ATELIER_PORT ?? '8189'
try {
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(4000) })
  process.exitCode = answer.ok ? 0 : 1
} catch {
  process.exitCode = 1
}
