"""Which operators of torch are not from scratch."""

from __future__ import annotations

FORBIDDEN_NAMES = frozenset(
    {
        "scaled_dot_product_attention",
        "multi_head_attention_forward",
        "MultiheadAttention",
        "Transformer",
        "TransformerEncoder",
        "TransformerEncoderLayer",
        "TransformerDecoder",
        "TransformerDecoderLayer",
        "flex_attention",
        "flash_attn_func",
        "varlen_attn",
        "_native_multi_head_attention",
        "_transformer_encoder_layer_fwd",
        "_scaled_dot_product_attention_math",
        "_scaled_dot_product_attention_math_for_mps",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_fused_attention_overrideable",
        "_flash_attention_forward",
        "_efficient_attention_forward",
        "_triton_scaled_dot_attention",
        "_triton_multi_head_attention",
    }
)
"""Names in torch whose use is not from scratch."""

FORBIDDEN_MODULES = frozenset({"torch.nn.attention.flex_attention", "torch.nn.attention.varlen"})
