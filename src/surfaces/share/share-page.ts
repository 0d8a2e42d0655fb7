/**
 * The page of a link: the same few lines of HTML for every link, and a script that asks for the rest. Its policy lets it load our own files and ask
 * ourselves, run nothing inline, and stand in frames of the listed hosts alone.
 */
import type { Share } from '../../domain/endpoints/shares/share.ts'
import type { PageBuild } from '../kit/content/page-files.ts'

/** `share`: null where the link does not work: the page says so. */
export function toPagePolicy(share: Share | null): string {
  const hosts = share?.referrers ?? []
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob: data:",
    "media-src 'self' blob:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    `frame-ancestors ${hosts.length === 0 ? "'none'" : hosts.join(' ')}`,
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

export const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex, nofollow',
  'Permissions-Policy':
    'accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=()',
} as const

/** `base`: what stands before every address of ours, made of letters that need no escape. */
export function renderSharePage(build: PageBuild, base: string): string {
  const at = (name: string) => `${base}/share/files/${name}`
  return `<!doctype html>
<html lang="en" data-theme="auto">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Loading…</title>
<link rel="icon" href="${at(build.icon)}" type="image/svg+xml">
<link rel="stylesheet" href="${at(build.share.style)}">
<script type="module" src="${at(build.share.script)}"></script>
</head>
<body>
<div id="app" aria-busy="true"></div>
<noscript>This page needs JavaScript.</noscript>
</body>
</html>
`
}
