{#- The usual names of a column of users, items, ratings or times, in lower case; the likelier ones first. -#}
{% macro usual_names(role) %}
  {{ return({
    'user': ['user_id', 'userid', 'user', 'uid', 'customer_id', 'customerid', 'member_id', 'reviewer_id'],
    'item': ['item_id', 'itemid', 'item', 'movie_id', 'movieid', 'movie', 'product_id', 'productid', 'book_id', 'isbn'],
    'rating': ['rating', 'score', 'stars', 'rate', 'value'],
    'time': ['rated_at', 'timestamp', 'time', 'date', 'created_at'],
  }[role]) }}
{% endmacro %}
