/** A small picture of an output, or a drawing of its kind. */
import { useState } from 'preact/hooks'
import { Icon } from '../icon.tsx'
import { thumbUrl } from './media.tsx'

interface ThumbProps {
  readonly assetId: string
  readonly type: string
  readonly alt: string
  readonly width: 64 | 128 | 256 | 512
}

export function Thumb({ assetId, type, alt, width }: ThumbProps) {
  const [isBroken, setBroken] = useState(false)
  // The service draws small ones of pictures alone.
  const isPicture = type.startsWith('image')
  if (!isPicture || isBroken)
    return (
      <span class="thumb-sign" role={alt === '' ? undefined : 'img'} aria-label={alt === '' ? undefined : alt}>
        <Icon name={type.startsWith('audio') ? 'sound' : type.startsWith('video') ? 'play' : 'file'} />
      </span>
    )
  return (
    <img
      class="thumb"
      src={thumbUrl(assetId, width)}
      alt={alt}
      loading="lazy"
      decoding="async"
      onError={() => setBroken(true)}
    />
  )
}
